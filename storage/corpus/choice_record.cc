#include "storage/corpus/choice_record.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/chat_template/json_value.h"

namespace troupe {
namespace {

using chat::Dict;
using chat::Value;

absl::Status BadRecord(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// The value of one of two names of a field.
struct NamedValue {
  const char* name = nullptr;
  const Value* value = nullptr;
};

absl::StatusOr<NamedValue> FindField(const Dict& record, const char* name,
                                     const char* other) {
  const Value* const value = record.Find(name);
  const Value* const alternate = record.Find(other);
  if (value != nullptr && alternate != nullptr) {
    return BadRecord(absl::StrCat("has both \"", name, "\" and \"", other,
                                  "\", which mean the same; leave one out"));
  }
  if (value != nullptr) return NamedValue{name, value};
  if (alternate != nullptr) return NamedValue{other, alternate};
  return BadRecord(
      absl::StrCat("has no \"", name,
                   "\"; a record is {\"prompt\": \"...\", \"choices\": "
                   "[\"...\", \"...\"], \"answer\": 0}"));
}

absl::StatusOr<std::string> ReadPrompt(const Dict& record) {
  ASSIGN_OR_RETURN(const NamedValue prompt,
                   FindField(record, "prompt", "query"));
  if (prompt.value->is_text()) return prompt.value->text();
  return BadRecord(absl::StrCat("its \"", prompt.name, "\" is ",
                                prompt.value->kind_words(), ", not a text"));
}

absl::StatusOr<std::vector<std::string>> ReadChoices(const Dict& record) {
  const Value* const list = record.Find("choices");
  if (list == nullptr) {
    return BadRecord(
        "has no \"choices\", the list of the texts of which one is right");
  }
  if (!list->is_list()) {
    return BadRecord(absl::StrCat("its \"choices\" is ", list->kind_words(),
                                  ", not a list of texts"));
  }
  if (list->items().size() < 2 || list->items().size() > kChoicesMax) {
    return BadRecord(absl::StrCat(
        "its \"choices\" has ", list->items().size(), " of 2 to ", kChoicesMax,
        " texts, and there is nothing to choose with fewer"));
  }
  std::vector<std::string> choices;
  for (const Value& choice : list->items()) {
    const size_t number = choices.size();
    if (!choice.is_text()) {
      return BadRecord(absl::StrCat("choices[", number, "] is ",
                                    choice.kind_words(), ", not a text"));
    }
    if (choice.text().empty()) {
      return BadRecord(absl::StrCat("choices[", number,
                                    "] is empty, so it has no likelihood; "
                                    "write what the model is to say"));
    }
    choices.push_back(choice.text());
  }
  return choices;
}

absl::StatusOr<int> ReadAnswer(const Dict& record, size_t choices) {
  ASSIGN_OR_RETURN(const NamedValue answer,
                   FindField(record, "answer", "gold"));
  if (!answer.value->Is(Value::Kind::kInt)) {
    return BadRecord(absl::StrCat(
        "its \"", answer.name, "\" is ", answer.value->kind_words(),
        ", not a whole number; give the place of the right choice, from 0 to ",
        choices - 1));
  }
  const int64_t place = answer.value->integer();
  if (place >= 0 && place < static_cast<int64_t>(choices)) {
    return static_cast<int>(place);
  }
  return BadRecord(absl::StrCat("its \"", answer.name, "\" is ", place,
                                ", and the places of its ", choices,
                                " choices are 0 to ", choices - 1));
}

bool IsContinuation(char byte) { return (byte & 0xC0) == 0x80; }

uint32_t CodeOf(absl::string_view character) {
  if (character.size() == 1) return static_cast<uint8_t>(character[0]);
  uint32_t code =
      static_cast<uint8_t>(character[0]) & (0x7F >> character.size());
  for (const char byte : character.substr(1)) {
    code = code << 6 | (static_cast<uint8_t>(byte) & 0x3F);
  }
  return code;
}

// As Python's str.isspace, which lm-evaluation-harness goes by.
bool IsPythonSpace(uint32_t code) {
  constexpr uint32_t kOthers[] = {0x20,   0x85,   0xA0,   0x1680, 0x2028,
                                  0x2029, 0x202F, 0x205F, 0x3000};
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x1F) ||
         (code >= 0x2000 && code <= 0x200A) ||
         std::count(std::begin(kOthers), std::end(kOthers), code) > 0;
}

// `text` without the white space at its end.
absl::string_view WithoutSpaceBehind(absl::string_view text) {
  while (!text.empty()) {
    size_t begin = text.size() - 1;
    while (begin > 0 && IsContinuation(text[begin])) --begin;
    if (!IsPythonSpace(CodeOf(text.substr(begin)))) break;
    text = text.substr(0, begin);
  }
  return text;
}

}  // namespace

absl::StatusOr<ChoiceRecord> ParseChoiceRecord(absl::string_view line) {
  ASSIGN_OR_RETURN(const Value value, chat::ParseJson(line));
  if (!value.is_dict()) {
    return BadRecord(
        absl::StrCat("is ", value.kind_words(), ", not an object"));
  }
  ChoiceRecord record;
  ASSIGN_OR_RETURN(record.prompt, ReadPrompt(value.dict()));
  ASSIGN_OR_RETURN(record.choices, ReadChoices(value.dict()));
  ASSIGN_OR_RETURN(record.answer,
                   ReadAnswer(value.dict(), record.choices.size()));
  return record;
}

int64_t CharacterCount(absl::string_view text) {
  return static_cast<int64_t>(text.size()) -
         std::count_if(text.begin(), text.end(), IsContinuation);
}

absl::StatusOr<std::vector<int32_t>> ChoiceEncoder::IdsOf(
    absl::string_view text) const {
  std::vector<int32_t> ids;
  RETURN_IF_ERROR(tokenizer_->Encode(text, ids));
  const std::vector<int32_t>& bos = options_.bos;
  const bool begins = ids.size() >= bos.size() &&
                      std::equal(bos.begin(), bos.end(), ids.begin());
  if (!begins) ids.insert(ids.begin(), bos.begin(), bos.end());
  return ids;
}

absl::StatusOr<std::vector<ChoiceRow>> ChoiceEncoder::Encode(
    const ChoiceRecord& record) const {
  ASSIGN_OR_RETURN(std::vector<int32_t> before,
                   IdsOf(WithoutSpaceBehind(record.prompt)));
  const size_t prompt_tokens = before.size();
  if (before.empty()) before = options_.in_place_of_prompt;
  if (before.empty()) {
    return BadRecord(absl::StrCat(
        "its prompt is empty, and the tokenizer ", tokenizer_->name(),
        " has neither a BOS nor an EOS token that could come before a choice; "
        "write a prompt"));
  }
  std::vector<ChoiceRow> rows;
  for (const std::string& choice : record.choices) {
    ASSIGN_OR_RETURN(
        const std::vector<int32_t> whole,
        IdsOf(absl::StrCat(record.prompt, options_.delimiter, choice)));
    // A choice may itself begin with what comes before it.
    const bool has_context =
        prompt_tokens == 0 && whole.size() >= before.size() &&
        std::equal(before.begin(), before.end(), whole.begin());
    const size_t begin = has_context ? before.size() : prompt_tokens;
    if (whole.size() <= begin) {
      return BadRecord(absl::StrCat(
          "choices[", rows.size(),
          "] adds no token to the prompt: the "
          "tokenizer ",
          tokenizer_->name(), " makes ", whole.size(), " tokens of both and ",
          begin,
          " of the prompt alone; begin the choice with a space, or with a "
          "character that does not join the prompt's last one"));
    }
    ChoiceRow& row = rows.emplace_back();
    row.ids = before;
    row.first_counted = before.size();
    row.ids.insert(row.ids.end(), whole.begin() + begin, whole.end());
  }
  return rows;
}

}  // namespace troupe
