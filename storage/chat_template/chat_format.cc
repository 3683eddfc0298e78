#include "storage/chat_template/chat_format.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/chat_template/json_value.h"
#include "storage/chat_template/value_text.h"
#include "storage/engine/posix_file.h"

namespace troupe::chat {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kFileBytesMax = uint64_t{64} << 20;
constexpr char kDefault[] = "default";
constexpr char kToolUse[] = "tool_use";
constexpr char kConfig[] = "tokenizer_config.json";
constexpr char kTokensMap[] = "special_tokens_map.json";
constexpr char kTemplateFile[] = "chat_template.jinja";
constexpr char kMoreTemplates[] = "additional_chat_templates";
// transformers' SPECIAL_TOKENS_ATTRIBUTES.
constexpr std::array<absl::string_view, 7> kTokens = {
    "bos_token", "eos_token", "unk_token", "sep_token",
    "pad_token", "cls_token", "mask_token"};

bool Exists(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none);
}

// A token in a config: a text, or an object with its content.
const Value* TextOfToken(const Value& token) {
  if (token.is_text()) return &token;
  const Value* const content =
      token.is_dict() ? token.dict().Find("content") : nullptr;
  return content != nullptr && content->is_text() ? content : nullptr;
}

Dict TokensOf(const Dict& config) {
  Dict tokens;
  const auto add = [&](absl::string_view name, const Value* value) {
    const Value* const text = value == nullptr ? nullptr : TextOfToken(*value);
    if (text != nullptr) tokens.Set(std::string(name), *text);
  };
  for (const absl::string_view name : kTokens) add(name, config.Find(name));
  const Value* const more = config.Find("extra_special_tokens");
  if (more == nullptr || !more->is_dict()) return tokens;
  for (const auto& [name, value] : more->dict().entries()) add(name, &value);
  return tokens;
}

absl::StatusOr<Dict> ReadConfig(const std::string& path) {
  if (!Exists(path)) return Dict();
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path, kFileBytesMax));
  const absl::StatusOr<Value> config = ParseJson(text);
  if (!config.ok()) return Annotate(config.status(), path);
  if (config->is_dict()) return config->dict();
  return absl::InvalidArgumentError(absl::StrCat(path, ": is no JSON object"));
}

// A directory's tokenizer_config.json, with the tokens of
// special_tokens_map.json that it does not name, as transformers reads them.
absl::StatusOr<Dict> ReadConfigs(const std::string& directory) {
  if (directory.empty()) return Dict();
  ASSIGN_OR_RETURN(Dict config,
                   ReadConfig(absl::StrCat(directory, "/", kConfig)));
  ASSIGN_OR_RETURN(const Dict map,
                   ReadConfig(absl::StrCat(directory, "/", kTokensMap)));
  for (const absl::string_view name : kTokens) {
    const Value* const token = map.Find(name);
    if (token != nullptr && config.Find(name) == nullptr) {
      config.Set(std::string(name), *token);
    }
  }
  return config;
}

// Whether each token that the template needs is known, or known not to be.
absl::Status CheckNeededTokens(const ChatFormat& format, const Dict& config,
                               const std::string& directory) {
  for (const absl::string_view name : kTokens) {
    if (!format.Needs(name)) continue;
    const Value* const said = config.Find(name);
    const bool known = said != nullptr && (said->Is(Value::Kind::kNone) ||
                                           TextOfToken(*said) != nullptr);
    if (known) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        format.name(), ": the chat template writes ", name, ", and ",
        directory.empty()
            ? absl::StrCat("without a tokenizer's directory nothing says what "
                           "it is; give the model's by --tokenizer DIR")
            : absl::StrCat("neither ", kConfig, " nor ", kTokensMap, " of ",
                           directory, " says what it is; put the model's ",
                           kConfig, " there, or write \"", name,
                           "\": null in it if the model has none")));
  }
  return absl::OkStatus();
}

// Of a config whose chat_template is a list: name and template of each.
absl::StatusOr<std::map<std::string, std::string>> NamedTemplates(
    const std::string& path, const Value& list) {
  std::map<std::string, std::string> named;
  for (const Value& item : list.items()) {
    const Value* const name =
        item.is_dict() ? item.dict().Find("name") : nullptr;
    const Value* const text =
        item.is_dict() ? item.dict().Find("template") : nullptr;
    if (name == nullptr || text == nullptr || !name->is_text() ||
        !text->is_text()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path,
          ": chat_template: each template of the list needs a name and a "
          "template"));
    }
    named[name->text()] = text->text();
  }
  return named;
}

// The templates of a directory, by name; none where it has none.
absl::StatusOr<std::map<std::string, std::string>> TemplatesIn(
    const std::string& directory, const Dict& config) {
  std::map<std::string, std::string> found;
  const std::string config_path = absl::StrCat(directory, "/", kConfig);
  const Value* const given = config.Find("chat_template");
  if (given != nullptr && given->is_text()) found[kDefault] = given->text();
  if (given != nullptr && given->is_list()) {
    ASSIGN_OR_RETURN(found, NamedTemplates(config_path, *given));
  }
  const std::string file = absl::StrCat(directory, "/", kTemplateFile);
  if (Exists(file)) {
    ASSIGN_OR_RETURN(found[kDefault], ReadWholeFile(file, kFileBytesMax));
  }
  const std::string tools =
      absl::StrCat(directory, "/", kMoreTemplates, "/", kToolUse, ".jinja");
  if (Exists(tools)) {
    ASSIGN_OR_RETURN(found[kToolUse], ReadWholeFile(tools, kFileBytesMax));
  }
  return found;
}

// Reasoning has several names in data; transformers gives templates the two
// that they read.
Value WithReasoning(const Value& message) {
  const Value* reasoning = nullptr;
  for (const char* const name :
       {"reasoning_content", "thinking", "reasoning"}) {
    const Value* const found = message.dict().Find(name);
    const bool is_there = found != nullptr && !found->Is(Value::Kind::kNone);
    if (is_there && reasoning == nullptr) reasoning = found;
  }
  if (reasoning == nullptr) return message;
  Dict named;
  named.Set("thinking", *reasoning);
  for (const auto& [name, value] : message.dict().entries()) {
    named.Set(name, value);
  }
  named.Set("reasoning_content", *reasoning);
  return Value::OfDict(std::move(named));
}

absl::StatusOr<List> CheckedMessages(const List& messages) {
  List checked;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Value* const role =
        messages[i].is_dict() ? messages[i].dict().Find("role") : nullptr;
    if (role == nullptr || !role->is_text()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "message ", i + 1, " is ", messages[i].kind_words(),
          messages[i].is_dict() ? " without a \"role\" that is a string"
                                : ", not an object with \"role\" and "
                                  "\"content\""));
    }
    checked.push_back(WithReasoning(messages[i]));
  }
  return checked;
}

bool HasTools(const Conversation& conversation) {
  return conversation.tools.is_defined() &&
         !conversation.tools.Is(Value::Kind::kNone);
}

}  // namespace

absl::StatusOr<Conversation> ToolsOf(const Dict& record) {
  Conversation conversation;
  const Value* const tools = record.Find("tools");
  if (tools != nullptr && !tools->Is(Value::Kind::kNone)) {
    if (!tools->is_list()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its \"tools\" are ", tools->kind_words(), ", not a list"));
    }
    conversation.tools = *tools;
  }
  const Value* const more = record.Find("chat_template_kwargs");
  if (more != nullptr && !more->Is(Value::Kind::kNone)) {
    if (!more->is_dict()) {
      return absl::InvalidArgumentError(
          absl::StrCat("its \"chat_template_kwargs\" are ", more->kind_words(),
                       ", not an object"));
    }
    conversation.variables = more->dict();
  }
  return conversation;
}

absl::StatusOr<Conversation> ReadConversation(absl::string_view json) {
  ASSIGN_OR_RETURN(const Value value, ParseJson(json));
  Conversation conversation;
  const Value* messages = &value;
  if (value.is_dict()) {
    ASSIGN_OR_RETURN(conversation, ToolsOf(value.dict()));
    messages = value.dict().Find("messages");
  }
  if (messages == nullptr || !messages->is_list() ||
      messages->items().empty()) {
    return absl::InvalidArgumentError(
        "is neither a list of messages nor an object with \"messages\"");
  }
  conversation.messages = messages->items();
  return conversation;
}

absl::StatusOr<ChatFormat> ChatFormat::Create(const std::string& name,
                                              const std::string& source,
                                              Dict tokens) {
  ChatFormat format(name, std::move(tokens));
  RETURN_IF_ERROR(format.AddTemplate(kDefault, source));
  return format;
}

absl::Status ChatFormat::AddTemplate(const std::string& name,
                                     const std::string& source) {
  absl::StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(source);
  if (!parsed.ok()) {
    return Annotate(
        parsed.status(),
        absl::StrCat(name_, ": chat template", name == kDefault ? "" : " ",
                     name == kDefault ? "" : name));
  }
  templates_.insert_or_assign(name, *std::move(parsed));
  sources_[name] = source;
  return absl::OkStatus();
}

const ChatTemplate& ChatFormat::TemplateFor(
    const Conversation& conversation) const {
  const auto tools = templates_.find(kToolUse);
  const bool uses_tools = HasTools(conversation) && tools != templates_.end();
  return uses_tools ? tools->second : templates_.at(kDefault);
}

absl::StatusOr<RenderedChat> ChatFormat::Render(
    const Conversation& conversation, bool add_generation_prompt) const {
  ASSIGN_OR_RETURN(List messages, CheckedMessages(conversation.messages));
  Dict variables = tokens_;
  for (const auto& [name, value] : conversation.variables.entries()) {
    variables.Set(name, value);
  }
  variables.Set("messages", Value::OfList(std::move(messages)));
  variables.Set("tools",
                HasTools(conversation) ? conversation.tools : Value::None());
  variables.Set("documents", Value::None());
  variables.Set("add_generation_prompt", Value::Bool(add_generation_prompt));
  absl::StatusOr<RenderedChat> chat =
      TemplateFor(conversation).Render(variables);
  if (!chat.ok()) {
    return Annotate(chat.status(), absl::StrCat(name_, ": chat template"));
  }
  return chat;
}

bool ChatFormat::MarksGeneration(const Conversation& conversation) const {
  return TemplateFor(conversation).marks_generation();
}

std::map<std::string, std::string> ChatFormat::ReadTokens() const {
  std::map<std::string, std::string> read;
  for (const auto& token : tokens_.entries()) {
    const bool is_read = std::any_of(
        templates_.begin(), templates_.end(),
        [&](const auto& named) { return named.second.Reads(token.first); });
    const std::string& text = token.second.text();
    if (is_read && !text.empty()) read[token.first] = text;
  }
  return read;
}

bool ChatFormat::Needs(absl::string_view name) const {
  return std::any_of(
      templates_.begin(), templates_.end(),
      [&](const auto& named) { return named.second.Needs(name); });
}

std::string ChatFormat::identity() const {
  std::string identity;
  for (const auto& [name, source] : sources_) {
    absl::StrAppend(&identity, name, "\n", source, "\n");
  }
  for (const auto& [name, text] : tokens_.entries()) {
    absl::StrAppend(&identity, name, " ", text.text(), "\n");
  }
  return identity;
}

absl::StatusOr<ChatFormat> OpenChatFormat(const std::string& tokenizer_path,
                                          const std::string& template_path) {
  std::string directory = tokenizer_path;
  std::error_code none;
  if (!directory.empty() && !fs::is_directory(directory, none)) {
    directory = fs::path(tokenizer_path).parent_path().string();
    if (directory.empty()) directory = ".";
  }
  ASSIGN_OR_RETURN(const Dict config, ReadConfigs(directory));
  if (!template_path.empty()) {
    ASSIGN_OR_RETURN(const std::string source,
                     ReadWholeFile(template_path, kFileBytesMax));
    ASSIGN_OR_RETURN(
        ChatFormat format,
        ChatFormat::Create(template_path, source, TokensOf(config)));
    RETURN_IF_ERROR(CheckNeededTokens(format, config, directory));
    return format;
  }
  std::map<std::string, std::string> found;
  if (!directory.empty()) {
    ASSIGN_OR_RETURN(found, TemplatesIn(directory, config));
  }
  if (found.count(kDefault) == 0) {
    return absl::NotFoundError(absl::StrCat(
        directory.empty()
            ? "there is no chat template"
            : absl::StrCat(directory, ": has no chat template: neither ",
                           kTemplateFile, " nor a chat_template in ", kConfig),
        "; give one with --chat-template FILE"));
  }
  ASSIGN_OR_RETURN(
      ChatFormat format,
      ChatFormat::Create(directory, found.at(kDefault), TokensOf(config)));
  const auto tools = found.find(kToolUse);
  if (tools != found.end()) {
    RETURN_IF_ERROR(format.AddTemplate(kToolUse, tools->second));
  }
  RETURN_IF_ERROR(CheckNeededTokens(format, config, directory));
  return format;
}

}  // namespace troupe::chat
