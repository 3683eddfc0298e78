// Chat templates: the Jinja2 templates by which models of Hugging Face write a
// conversation as one text (`tokenizer.apply_chat_template`). Debian has no C++
// library for them, so the part of Jinja2 that such templates use is
// interpreted here, as transformers runs it: a sandbox with trim_blocks,
// lstrip_blocks, loop controls, `raise_exception`, its `tojson`, and
// `{% generation %}`. What is not supported is refused by name, with line and
// column; docs/chat_templates.md lists it.
//
//   ASSIGN_OR_RETURN(ChatTemplate chat, ChatTemplate::Parse(source));
//   ASSIGN_OR_RETURN(RenderedChat text, chat.Render(variables));
//
// `strftime_now` is not defined, so that tokens do not depend on the day: a
// template that looks whether it is defined takes its other way.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_CHAT_TEMPLATE_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_CHAT_TEMPLATE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/chat_template/value.h"

namespace troupe::chat {

struct TextRange {
  size_t begin = 0;  // bytes
  size_t end = 0;
};

struct RenderedChat {
  std::string text;
  // What stands within `{% generation %}`, in order.
  std::vector<TextRange> generated;
};

struct RenderLimits {
  int64_t steps = 5'000'000;
  size_t text_bytes = size_t{64} << 20;  // of each text
};

// Immutable; thread-safe.
class ChatTemplate {
 public:
  // InvalidArgument, with line and column, where it is no template or uses what
  // is not supported.
  static absl::StatusOr<ChatTemplate> Parse(absl::string_view source);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  // With these names: messages, add_generation_prompt, bos_token, ...
  // InvalidArgument, with line and column, where the template refuses the
  // conversation (`raise_exception`) or does what Python could not do;
  // ResourceExhausted past the limits.
  absl::StatusOr<RenderedChat> Render(const Dict& variables,
                                      const RenderLimits& limits = {}) const;

  // Whether it has `{% generation %}`.
  bool marks_generation() const;
  // Whether it reads a variable of this name anywhere.
  bool Reads(absl::string_view name) const;
  // Whether it reads it for more than to ask `is defined`, and does not set it
  // itself. A template that guards what it reads needs it all the same.
  bool Needs(absl::string_view name) const;

 private:
  struct Parts;
  explicit ChatTemplate(std::unique_ptr<const Parts> parts);

  std::unique_ptr<const Parts> parts_;
};

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_CHAT_TEMPLATE_H_
