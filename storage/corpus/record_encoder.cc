#include "storage/corpus/record_encoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "storage/chat_template/json_value.h"

namespace troupe {
namespace {

using chat::Conversation;
using chat::Dict;
using chat::List;
using chat::RenderedChat;
using chat::TextRange;
using chat::Value;

// Each message of the assistant renders the conversation up to it.
constexpr size_t kMessagesMax = 1024;
constexpr size_t kTurnNamesShown = 8;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

absl::StatusOr<Dict> RecordOf(absl::string_view line) {
  ASSIGN_OR_RETURN(const Value value, chat::ParseJson(line));
  if (value.is_dict()) return value.dict();
  return Wrong(absl::StrCat("is ", value.kind_words(), ", not an object"));
}

absl::Status NoRecord(const Dict& record) {
  std::vector<std::string> names;
  for (const auto& [name, value] : record.entries()) {
    if (names.size() < kTurnNamesShown) names.push_back(name);
  }
  return Wrong(absl::StrCat(
      "has neither \"messages\" nor \"prompt\" and \"completion\"",
      names.empty() ? "" : "; it has ", absl::StrJoin(names, ", ")));
}

absl::Status CheckMessages(absl::string_view field, const Value& messages) {
  if (!messages.is_list() || messages.items().empty()) {
    return Wrong(absl::StrCat(
        "its \"", field, "\" is ",
        messages.is_list() ? "an empty list" : messages.kind_words(),
        messages.is_list() ? "" : ", not a list"));
  }
  if (messages.items().size() <= kMessagesMax) return absl::OkStatus();
  return Wrong(absl::StrCat("its \"", field, "\" has ", messages.items().size(),
                            " messages, more than ", kMessagesMax));
}

bool IsAssistant(const Value& message) {
  const Value* const role =
      message.is_dict() ? message.dict().Find("role") : nullptr;
  return role != nullptr && role->is_text() && role->text() == "assistant";
}

// Texts: the completion counts.
absl::StatusOr<RenderedChat> OfTexts(const Value& prompt,
                                     const Value& completion) {
  if (completion.text().empty()) return Wrong("its \"completion\" is empty");
  const size_t begin = prompt.text().size();
  RenderedChat text = {.text = absl::StrCat(prompt.text(), completion.text())};
  text.generated = {{.begin = begin, .end = text.text.size()}};
  return text;
}

}  // namespace

absl::Status CheckTokensOf(const chat::ChatFormat& format,
                           const Tokenizer& tokenizer) {
  for (const auto& [name, text] : format.ReadTokens()) {
    std::vector<int32_t> ids;
    RETURN_IF_ERROR(tokenizer.Encode(text, ids));
    if (ids.size() == 1) continue;
    return Wrong(absl::StrCat(
        format.name(), ": the chat template writes ", name, " \"", text,
        "\", which the tokenizer ", tokenizer.name(), " splits into ",
        ids.size(),
        " tokens; use the model's tokenizer.json, where it is one token"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RecordEncoder> RecordEncoder::Create(
    const Tokenizer& tokenizer, absl::StatusOr<chat::ChatFormat> format) {
  if (format.ok()) RETURN_IF_ERROR(CheckTokensOf(*format, tokenizer));
  return RecordEncoder(tokenizer, std::move(format));
}

std::string RecordEncoder::identity() const {
  return format_.ok() ? format_->identity() : "";
}

absl::StatusOr<size_t> RecordEncoder::PrefixOf(const Conversation& conversation,
                                               size_t messages,
                                               bool add_generation_prompt,
                                               absl::string_view whole) const {
  Conversation part = conversation;
  part.messages.resize(messages);
  const auto text = format_->Render(part, add_generation_prompt);
  if (text.ok() && absl::StartsWith(whole, text->text)) {
    return text->text.size();
  }
  const std::string why =
      text.ok() ? "otherwise than when more messages follow"
                : absl::StrCat("not at all (", text.status().message(), ")");
  return Wrong(absl::StrCat(
      "the chat template writes the first ", messages, " of ",
      conversation.messages.size(), " messages ",
      add_generation_prompt ? "and the generation prompt " : "", why,
      ", so what the assistant writes cannot be told from the rest; give a "
      "template with {% generation %} by --chat-template, or make of each turn "
      "a record of its own, with \"prompt\" and \"completion\" as lists of "
      "messages"));
}

absl::StatusOr<std::vector<TextRange>> RecordEncoder::FindTurns(
    const Conversation& conversation, absl::string_view whole) const {
  std::vector<TextRange> turns;
  const size_t count = conversation.messages.size();
  for (size_t i = 0; i < count; ++i) {
    if (!IsAssistant(conversation.messages[i])) continue;
    TextRange turn;
    ASSIGN_OR_RETURN(turn.begin, PrefixOf(conversation, i, true, whole));
    ASSIGN_OR_RETURN(turn.end, PrefixOf(conversation, i + 1, false, whole));
    if (turn.begin < turn.end) turns.push_back(turn);
  }
  return turns;
}

absl::StatusOr<RenderedChat> RecordEncoder::OfMessages(
    const Dict& record) const {
  ASSIGN_OR_RETURN(Conversation conversation, chat::ToolsOf(record));
  const Value& messages = *record.Find("messages");
  RETURN_IF_ERROR(CheckMessages("messages", messages));
  RETURN_IF_ERROR(format_.status());
  conversation.messages = messages.items();
  ASSIGN_OR_RETURN(RenderedChat text, format_->Render(conversation, false));
  if (!format_->MarksGeneration(conversation)) {
    ASSIGN_OR_RETURN(text.generated, FindTurns(conversation, text.text));
  }
  const bool any =
      std::any_of(text.generated.begin(), text.generated.end(),
                  [](const TextRange& r) { return r.begin < r.end; });
  if (any) return text;
  return Wrong(
      "none of its messages is one of the assistant that says something, so "
      "nothing of it counts");
}

// Prompt and completion, both of messages.
absl::StatusOr<RenderedChat> RecordEncoder::OfTurns(
    const Dict& record, const Value& prompt, const Value& completion) const {
  ASSIGN_OR_RETURN(Conversation conversation, chat::ToolsOf(record));
  RETURN_IF_ERROR(CheckMessages("prompt", prompt));
  RETURN_IF_ERROR(CheckMessages("completion", completion));
  RETURN_IF_ERROR(format_.status());
  conversation.messages = prompt.items();
  const List& more = completion.items();
  conversation.messages.insert(conversation.messages.end(), more.begin(),
                               more.end());
  ASSIGN_OR_RETURN(RenderedChat text, format_->Render(conversation, false));
  ASSIGN_OR_RETURN(
      const size_t begin,
      PrefixOf(conversation, prompt.items().size(), true, text.text));
  if (begin == text.text.size()) return Wrong("its \"completion\" is empty");
  text.generated = {{.begin = begin, .end = text.text.size()}};
  return text;
}

// How many tokens of `whole`, those of a text, come before the end of its
// prefix; where that is within a token: with it, if `within`. Tokens before
// that place may differ from those of the prefix alone, so that bytes are
// counted from where they begin to.
absl::StatusOr<size_t> RecordEncoder::TokensUpTo(
    absl::string_view prefix, const std::vector<int32_t>& whole,
    bool within) const {
  std::vector<int32_t> ids;
  RETURN_IF_ERROR(tokenizer_->Encode(prefix, ids));
  const auto [in_prefix, in_whole] =
      std::mismatch(ids.begin(), ids.end(), whole.begin(), whole.end());
  size_t left = 0;  // bytes of the prefix behind what both have
  for (auto id = in_prefix; id != ids.end(); ++id) {
    ASSIGN_OR_RETURN(const std::string text, tokenizer_->TokenText(*id));
    left += text.size();
  }
  auto tokens = static_cast<size_t>(in_whole - whole.begin());
  while (left > 0 && tokens < whole.size()) {
    ASSIGN_OR_RETURN(const std::string text,
                     tokenizer_->TokenText(whole[tokens]));
    if (text.size() > left) return within ? tokens + 1 : tokens;
    left -= text.size();
    ++tokens;
  }
  return tokens;
}

absl::StatusOr<RenderedChat> RecordEncoder::TextOf(const Dict& record,
                                                   bool& ends) const {
  const Value* const messages = record.Find("messages");
  const Value* const prompt = record.Find("prompt");
  const Value* const completion = record.Find("completion");
  ends = false;
  if (messages != nullptr) {
    if (prompt == nullptr && completion == nullptr) return OfMessages(record);
    return Wrong(
        "has \"messages\" beside \"prompt\" or \"completion\"; leave one out");
  }
  if (prompt == nullptr || completion == nullptr) return NoRecord(record);
  if (prompt->is_text() && completion->is_text()) {
    ends = true;
    return OfTexts(*prompt, *completion);
  }
  if (prompt->is_list() && completion->is_list()) {
    return OfTurns(record, *prompt, *completion);
  }
  return Wrong(absl::StrCat("its \"prompt\" is ", prompt->kind_words(),
                            " and its \"completion\" ",
                            completion->kind_words(),
                            "; both must be strings, or lists of messages"));
}

// Which of a text's tokens count.
absl::StatusOr<std::vector<uint8_t>> RecordEncoder::CountsOf(
    const RenderedChat& text, const std::vector<int32_t>& ids) const {
  std::vector<uint8_t> counts(ids.size(), 0);
  const absl::string_view all = text.text;
  for (const TextRange& range : text.generated) {
    if (range.begin == range.end) continue;
    ASSIGN_OR_RETURN(const size_t begin,
                     TokensUpTo(all.substr(0, range.begin), ids, false));
    size_t end = ids.size();
    if (range.end < all.size()) {
      ASSIGN_OR_RETURN(end, TokensUpTo(all.substr(0, range.end), ids, true));
    }
    for (size_t i = begin; i < end; ++i) counts[i] = 1;
  }
  return counts;
}

absl::Status RecordEncoder::Encode(absl::string_view line,
                                   std::vector<int32_t>& ids,
                                   std::vector<uint8_t>& counts) const {
  ASSIGN_OR_RETURN(const Dict record, RecordOf(line));
  bool ends = false;
  ASSIGN_OR_RETURN(const RenderedChat text, TextOf(record, ends));
  std::vector<int32_t> whole;
  RETURN_IF_ERROR(tokenizer_->Encode(text.text, whole));
  ASSIGN_OR_RETURN(std::vector<uint8_t> which, CountsOf(text, whole));
  const auto eos = tokenizer_->eos_id();
  if (ends && eos.has_value() && (whole.empty() || whole.back() != *eos)) {
    whole.push_back(*eos);
    which.push_back(1);
  }
  // Nothing comes before the first token, so nothing predicts it.
  if (whole.size() < 2 || std::count(which.begin() + 1, which.end(), 1) == 0) {
    return Wrong("has no token that counts behind its first token");
  }
  ids.insert(ids.end(), whole.begin(), whole.end());
  counts.insert(counts.end(), which.begin(), which.end());
  return absl::OkStatus();
}

}  // namespace troupe
