// How a model writes conversations: its chat template and the tokens that the
// template may name.
//
//   ASSIGN_OR_RETURN(ChatFormat format, OpenChatFormat("models/qwen3", ""));
//   ASSIGN_OR_RETURN(RenderedChat text, format.Render({.messages = messages}));
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_CHAT_FORMAT_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_CHAT_FORMAT_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/chat_template/chat_template.h"
#include "storage/chat_template/value.h"

namespace troupe::chat {

struct Conversation {
  List messages;
  // A list of what the model may call; undefined or none: nothing.
  Value tools = Value();
  // Other variables of the template: enable_thinking, date_string.
  Dict variables = Dict();
};

// Of JSON: a list of messages, or an object with `messages` and, where it has
// them, `tools` and `chat_template_kwargs`. InvalidArgument for another.
absl::StatusOr<Conversation> ReadConversation(absl::string_view json);

// The tools and variables of a record, as above, and no messages.
absl::StatusOr<Conversation> ToolsOf(const Dict& record);

class ChatFormat {
 public:
  // `source`: the template. `tokens`: bos_token, eos_token, ... `name`: for
  // messages, where the template is from. Errors of ChatTemplate::Parse, with
  // the name.
  static absl::StatusOr<ChatFormat> Create(const std::string& name,
                                           const std::string& source,
                                           Dict tokens);

  // A template of another name, which is taken for conversations with tools
  // where the name is "tool_use", as transformers does it.
  absl::Status AddTemplate(const std::string& name, const std::string& source);

  // As transformers' apply_chat_template(conversation, tokenize=False).
  // InvalidArgument, with its number, for a message that is no object with a
  // role; errors of ChatTemplate::Render, with the template's name.
  absl::StatusOr<RenderedChat> Render(const Conversation& conversation,
                                      bool add_generation_prompt) const;

  // Whether the template that is taken for it has `{% generation %}`.
  bool MarksGeneration(const Conversation& conversation) const;

  // Texts of tokens that a template reads and that are not empty, by name.
  std::map<std::string, std::string> ReadTokens() const;

  // Whether a template needs the variable (ChatTemplate::Needs).
  bool Needs(absl::string_view name) const;

  const std::string& name() const { return name_; }
  // All that texts depend on.
  std::string identity() const;

 private:
  ChatFormat(std::string name, Dict tokens)
      : name_(std::move(name)), tokens_(std::move(tokens)) {}
  const ChatTemplate& TemplateFor(const Conversation& conversation) const;

  std::string name_;
  Dict tokens_;
  std::map<std::string, ChatTemplate> templates_;  // "default" and others
  std::map<std::string, std::string> sources_;
};

// The format of a Hugging Face directory, or of the directory of a tokenizer's
// file, or, where the path is empty, of none: chat_template.jinja, or
// chat_template of tokenizer_config.json. If `template_path` is not empty, that
// file is the template. Tokens are those of tokenizer_config.json, and, where
// it does not name them, of special_tokens_map.json. NotFound where there is no
// template, and what to do; InvalidArgument, with the file, where one is
// damaged or uses what is not supported, and where the template needs bos_token
// or its like, of which no file says what it is, or by null that there is none:
// it would be written as nothing.
absl::StatusOr<ChatFormat> OpenChatFormat(const std::string& tokenizer_path,
                                          const std::string& template_path);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_CHAT_FORMAT_H_
