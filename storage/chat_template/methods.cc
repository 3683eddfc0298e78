#include "storage/chat_template/methods.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "storage/chat_template/python_text.h"

namespace troupe::chat {
namespace {

using ValueOr = absl::StatusOr<Value>;

struct MethodCall {
  const Value& value;
  const Arguments& arguments;
  Budget& budget;
};

absl::StatusOr<std::string> TextArgument(const Value& value, Budget& budget) {
  if (value.is_text()) {
    RETURN_IF_ERROR(budget.SpendRead(value.text().size()));
    return value.text();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("expected a string, not ", value.kind_words()));
}

// None and what is not given: no text.
absl::StatusOr<std::optional<std::string>> TextIfGiven(const Value& value,
                                                       Budget& budget) {
  if (!value.is_defined() || value.Is(Value::Kind::kNone)) {
    return std::optional<std::string>();
  }
  ASSIGN_OR_RETURN(std::string text, TextArgument(value, budget));
  return std::optional<std::string>(std::move(text));
}

absl::StatusOr<int64_t> CountIfGiven(const Value& value) {
  if (!value.is_defined()) return int64_t{-1};
  if (value.is_integer()) return value.integer();
  return absl::InvalidArgumentError(
      absl::StrCat("expected a number, not ", value.kind_words()));
}

template <bool kLeft, bool kRight>
ValueOr StripText(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"chars"}));
  ASSIGN_OR_RETURN(const auto characters, TextIfGiven(values[0], call.budget));
  RETURN_IF_ERROR(SpendStrip(call.value.text(), characters, call.budget));
  return NewText(
      Strip(call.value.text(), characters, {.left = kLeft, .right = kRight}),
      call.budget);
}

Value ListOfTexts(std::vector<std::string> texts) {
  List items;
  for (std::string& text : texts) {
    items.push_back(Value::Text(std::move(text)));
  }
  return Value::OfList(std::move(items));
}

template <auto kSplit>
ValueOr SplitText(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"sep", "maxsplit"}));
  ASSIGN_OR_RETURN(const auto separator, TextIfGiven(values[0], call.budget));
  ASSIGN_OR_RETURN(const int64_t most, CountIfGiven(values[1]));
  if (separator.has_value() && separator->empty()) {
    return absl::InvalidArgumentError("the separator is empty");
  }
  const std::string& text = call.value.text();
  RETURN_IF_ERROR(call.budget.SpendSearch(
      text.size(), separator.has_value() ? separator->size() : 0));
  size_t parts = CountParts(text, separator);
  if (most >= 0) parts = std::min(parts, static_cast<size_t>(most) + 1);
  RETURN_IF_ERROR(call.budget.Spend(parts));
  return ListOfTexts(kSplit(text, separator, most));
}

ValueOr SplitTextLines(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"keepends"}));
  const std::string& text = call.value.text();
  RETURN_IF_ERROR(call.budget.Spend(CountLines(text)));
  return ListOfTexts(SplitLines(text, values[0].Truth()));
}

// startswith, endswith: of a string or of any of a tuple.
template <bool (*kHas)(absl::string_view, absl::string_view) noexcept>
ValueOr HasAtEnd(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"prefix"}, 1));
  List any = {values[0]};
  if (values[0].Is(Value::Kind::kTuple)) {
    ASSIGN_OR_RETURN(any, ItemsOf(values[0], call.budget));
  }
  for (const Value& one : any) {
    ASSIGN_OR_RETURN(const std::string text, TextArgument(one, call.budget));
    if (kHas(call.value.text(), text)) return Value::Bool(true);
  }
  return Value::Bool(false);
}

template <bool kPrefix>
ValueOr RemoveAtEnd(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"prefix"}, 1));
  ASSIGN_OR_RETURN(const std::string text,
                   TextArgument(values[0], call.budget));
  absl::string_view left = call.value.text();
  if (kPrefix && absl::StartsWith(left, text)) left.remove_prefix(text.size());
  if (!kPrefix && absl::EndsWith(left, text)) left.remove_suffix(text.size());
  return NewText(std::string(left), call.budget);
}

ValueOr ReplaceText(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values,
                   call.arguments.Bind({"old", "new", "count"}, 2));
  ASSIGN_OR_RETURN(const std::string from,
                   TextArgument(values[0], call.budget));
  ASSIGN_OR_RETURN(const std::string to, TextArgument(values[1], call.budget));
  ASSIGN_OR_RETURN(const int64_t most, CountIfGiven(values[2]));
  RETURN_IF_ERROR(
      call.budget.SpendSearch(call.value.text().size(), from.size()));
  std::optional<std::string> replaced =
      Replace(call.value.text(), from, to, most, call.budget.text_bytes_max());
  if (!replaced.has_value()) {
    return call.budget.CheckText(call.budget.text_bytes_max() + 1);
  }
  return NewText(*std::move(replaced), call.budget);
}

// `kStepsPerByte`: of a change that takes each character by itself.
template <std::string (*kChange)(absl::string_view), size_t kStepsPerByte = 0>
ValueOr Change(const MethodCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  RETURN_IF_ERROR(call.budget.Spend(kStepsPerByte * call.value.text().size()));
  return NewText(kChange(call.value.text()), call.budget);
}

template <bool kFromRight>
ValueOr FindText(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"sub"}, 1));
  ASSIGN_OR_RETURN(const std::string text,
                   TextArgument(values[0], call.budget));
  const absl::string_view in = call.value.text();
  RETURN_IF_ERROR(call.budget.SpendSearch(in.size(), text.size()));
  const size_t found = kFromRight ? in.rfind(text) : in.find(text);
  if (found == absl::string_view::npos) return Value::Int(-1);
  return Value::Int(CharacterCount(in.substr(0, found)));
}

ValueOr CountText(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"sub"}, 1));
  ASSIGN_OR_RETURN(const std::string text,
                   TextArgument(values[0], call.budget));
  if (text.empty()) {
    return Value::Int(CharacterCount(call.value.text()) + 1);
  }
  RETURN_IF_ERROR(
      call.budget.SpendSearch(call.value.text().size(), text.size()));
  const size_t parts = CountParts(call.value.text(), text);
  return Value::Int(static_cast<int64_t>(parts) - 1);
}

ValueOr JoinTexts(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"items"}, 1));
  ASSIGN_OR_RETURN(const List items, ItemsOf(values[0], call.budget));
  std::string joined;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string text,
                     TextArgument(items[i], call.budget));
    RETURN_IF_ERROR(call.budget.SpendRead(call.value.text().size()));
    absl::StrAppend(&joined, i == 0 ? "" : call.value.text(), text);
    RETURN_IF_ERROR(call.budget.CheckText(joined.size()));
  }
  return NewText(std::move(joined), call.budget);
}

ValueOr GetKey(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values,
                   call.arguments.Bind({"key", "default"}, 1));
  if (values[0].is_text()) {
    RETURN_IF_ERROR(call.budget.SpendRead(values[0].text().size()));
  }
  const Value* const found =
      values[0].is_text() ? call.value.dict().Find(values[0].text()) : nullptr;
  if (found != nullptr) return *found;
  return values[1].is_defined() ? values[1] : Value::None();
}

template <bool kKeys, bool kValues>
ValueOr ViewOfDict(const MethodCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  const Dict& dict = call.value.dict();
  RETURN_IF_ERROR(SpendKeys(dict, call.budget));
  if (kKeys && kValues) return Value::View(PairsOf(dict));
  List items;
  for (const auto& [key, value] : dict.entries()) {
    items.push_back(kKeys ? Value::Text(key) : value);
  }
  return Value::View(std::move(items));
}

template <bool kCount>
ValueOr FindItem(const MethodCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"value"}, 1));
  const List& items = call.value.items();
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool is_it,
                     Equals(items[i], values[0], call.budget));
    if (is_it && !kCount) return Value::Int(static_cast<int64_t>(i));
    count += is_it;
  }
  if (kCount) return Value::Int(count);
  return absl::InvalidArgumentError("index: the item is not in the list");
}

struct MethodRow {
  absl::string_view name;
  ValueOr (*run)(const MethodCall& call);  // null: known, and not supported
};
constexpr MethodRow kTextMethods[] = {
    {"capitalize", &Change<Capitalize>},
    {"count", &CountText},
    {"endswith", &HasAtEnd<&absl::EndsWith>},
    {"find", &FindText<false>},
    {"join", &JoinTexts},
    {"lower", &Change<Lower>},
    {"lstrip", &StripText<true, false>},
    {"removeprefix", &RemoveAtEnd<true>},
    {"removesuffix", &RemoveAtEnd<false>},
    {"replace", &ReplaceText},
    {"rfind", &FindText<true>},
    {"rsplit", &SplitText<&SplitFromRight>},
    {"rstrip", &StripText<false, true>},
    {"split", &SplitText<&Split>},
    {"splitlines", &SplitTextLines},
    {"startswith", &HasAtEnd<&absl::StartsWith>},
    {"strip", &StripText<true, true>},
    {"title", &Change<Title, 1>},
    {"upper", &Change<Upper>},
    {"casefold", nullptr},
    {"center", nullptr},
    {"encode", nullptr},
    {"expandtabs", nullptr},
    {"format", nullptr},
    {"format_map", nullptr},
    {"index", nullptr},
    {"isalnum", nullptr},
    {"isalpha", nullptr},
    {"isascii", nullptr},
    {"isdecimal", nullptr},
    {"isdigit", nullptr},
    {"isidentifier", nullptr},
    {"islower", nullptr},
    {"isnumeric", nullptr},
    {"isprintable", nullptr},
    {"isspace", nullptr},
    {"istitle", nullptr},
    {"isupper", nullptr},
    {"ljust", nullptr},
    {"partition", nullptr},
    {"rindex", nullptr},
    {"rjust", nullptr},
    {"rpartition", nullptr},
    {"swapcase", nullptr},
    {"translate", nullptr},
    {"zfill", nullptr},
};
constexpr MethodRow kDictMethods[] = {
    {"get", &GetKey},
    {"items", &ViewOfDict<true, true>},
    {"keys", &ViewOfDict<true, false>},
    {"values", &ViewOfDict<false, true>},
    {"clear", nullptr},
    {"copy", nullptr},
    {"fromkeys", nullptr},
    {"pop", nullptr},
    {"popitem", nullptr},
    {"setdefault", nullptr},
    {"update", nullptr},
};
constexpr MethodRow kListMethods[] = {
    {"count", &FindItem<true>}, {"index", &FindItem<false>},
    {"append", nullptr},        {"clear", nullptr},
    {"copy", nullptr},          {"extend", nullptr},
    {"insert", nullptr},        {"pop", nullptr},
    {"remove", nullptr},        {"reverse", nullptr},
    {"sort", nullptr},
};

absl::Span<const MethodRow> MethodsOf(const Value& value) {
  if (value.is_text()) return kTextMethods;
  if (value.is_dict()) return kDictMethods;
  if (value.is_list()) return kListMethods;
  return {};
}

const MethodRow* FindMethod(const Value& value, absl::string_view name) {
  for (const MethodRow& row : MethodsOf(value)) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace

absl::Status SpendStrip(absl::string_view text,
                        const std::optional<std::string>& characters,
                        Budget& budget) {
  const size_t each = characters.has_value() ? characters->size() : 0;
  return budget.SpendRead((text.size() + 1) * (each + 1));
}

List PairsOf(const Dict& dict) {
  List pairs;
  for (const auto& [key, value] : dict.entries()) {
    pairs.push_back(Value::Tuple({Value::Text(key), value}));
  }
  return pairs;
}

ValueOr AttributeOf(const Value& value, absl::string_view name) {
  if (!value.is_defined()) {
    return absl::InvalidArgumentError(absl::StrCat(
        value.name().empty() ? "a value" : absl::StrCat("'", value.name(), "'"),
        " is undefined, so it has no '", name, "'"));
  }
  if (FindMethod(value, name) != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is a method of ", value.kind_words(),
                     ", and without a call it is not supported; an "
                     "item of that name is found by ['",
                     name, "']"));
  }
  if (value.is_dict()) {
    const Value* const found = value.dict().Find(name);
    if (found != nullptr) return *found;
  }
  if (value.Is(Value::Kind::kNamespace)) {
    const auto found = value.space().find(std::string(name));
    if (found != value.space().end()) return found->second;
  }
  return Value::UndefinedNamed(std::string(name));
}

ValueOr CallMethod(const Value& value, absl::string_view name,
                   const Arguments& arguments, Budget& budget) {
  const MethodRow* const row = FindMethod(value, name);
  if (row != nullptr && row->run != nullptr) {
    RETURN_IF_ERROR(budget.Spend(1));
    if (value.is_text()) {
      RETURN_IF_ERROR(budget.SpendRead(value.text().size()));
    }
    return row->run({value, arguments, budget});
  }
  if (!value.is_defined()) return AttributeOf(value, name);
  std::vector<absl::string_view> names;
  for (const MethodRow& known : MethodsOf(value)) {
    if (known.run != nullptr) names.push_back(known.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the method '", name, "' of ", value.kind_words(), " is not supported",
      names.empty()
          ? ""
          : absl::StrCat("; there are: ", absl::StrJoin(names, ", "))));
}

}  // namespace troupe::chat
