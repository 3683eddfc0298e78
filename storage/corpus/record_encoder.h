// Records for fine-tuning, as tokens of which some count: what the model is to
// learn to write. A record is a line of JSON, in the forms that trl's
// SFTTrainer takes:
//
//   {"prompt": "2 + 2 =", "completion": " 4"}
//   {"prompt": [messages], "completion": [messages]}
//   {"messages": [{"role": "user", "content": "Hi"}, ...]}
//
// Messages become one text by the model's chat template, with the record's
// `tools` and `chat_template_kwargs` where it has them. Other fields are not
// read. What counts:
//
//  * of texts: all of the completion, and the tokenizer's EOS behind it, which
//    is put there where the tokenizer has one;
//  * of messages in prompt and completion: all that the template writes behind
//    the prompt and its generation prompt;
//  * of `messages`: what stands in the template's `{% generation %}`, or, of a
//    template without, all that it writes for each message of the assistant
//    behind the generation prompt, its end token included.
//
// A text is encoded as a whole. A token of which a part counts counts.
#ifndef TROUPE_STORAGE_CORPUS_RECORD_ENCODER_H_
#define TROUPE_STORAGE_CORPUS_RECORD_ENCODER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/chat_template/chat_format.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

// InvalidArgument where the tokenizer splits a token that the template names:
// it would be read as a text.
absl::Status CheckTokensOf(const chat::ChatFormat& format,
                           const Tokenizer& tokenizer);

// Immutable; thread-safe.
class RecordEncoder {
 public:
  // `format`: for messages; NotFound where there is no chat template, which is
  // the error of a record that has some.
  // Errors of CheckTokensOf.
  static absl::StatusOr<RecordEncoder> Create(
      const Tokenizer& tokenizer, absl::StatusOr<chat::ChatFormat> format);

  // Appends a record's ids and for each whether it counts. InvalidArgument, and
  // nothing is appended, for a line that is no such record, one of which
  // nothing counts, and one whose template does not let what counts be found.
  // NotFound for messages where there is no chat template: no other line with
  // messages can be encoded either.
  absl::Status Encode(absl::string_view line, std::vector<int32_t>& ids,
                      std::vector<uint8_t>& counts) const;

  // All that tokens depend on, besides the tokenizer.
  std::string identity() const;

 private:
  RecordEncoder(const Tokenizer& tokenizer,
                absl::StatusOr<chat::ChatFormat> format)
      : tokenizer_(&tokenizer), format_(std::move(format)) {}

  // `ends`: the tokenizer's EOS belongs behind it.
  absl::StatusOr<chat::RenderedChat> TextOf(const chat::Dict& record,
                                            bool& ends) const;
  absl::StatusOr<chat::RenderedChat> OfMessages(const chat::Dict& record) const;
  absl::StatusOr<chat::RenderedChat> OfTurns(
      const chat::Dict& record, const chat::Value& prompt,
      const chat::Value& completion) const;
  absl::StatusOr<std::vector<chat::TextRange>> FindTurns(
      const chat::Conversation& conversation, absl::string_view whole) const;
  absl::StatusOr<size_t> PrefixOf(const chat::Conversation& conversation,
                                  size_t messages, bool add_generation_prompt,
                                  absl::string_view whole) const;
  absl::StatusOr<std::vector<uint8_t>> CountsOf(
      const chat::RenderedChat& text, const std::vector<int32_t>& ids) const;
  absl::StatusOr<size_t> TokensUpTo(absl::string_view prefix,
                                    const std::vector<int32_t>& whole,
                                    bool within) const;

  const Tokenizer* tokenizer_;
  absl::StatusOr<chat::ChatFormat> format_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_RECORD_ENCODER_H_
