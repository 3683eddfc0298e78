#include "storage/chat_template/filters.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/status.h"
#include "storage/chat_template/methods.h"
#include "storage/chat_template/python_text.h"
#include "storage/chat_template/value_text.h"

namespace troupe::chat {
namespace {

struct FilterCall {
  const Value& value;
  const Arguments& arguments;
  Budget& budget;
};
using ValueOr = absl::StatusOr<Value>;

ValueOr Trim(const FilterCall& call) {
  ASSIGN_OR_RETURN(const std::string text, TextOf(call.value, call.budget));
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"chars"}));
  std::optional<std::string> characters;
  if (values[0].is_text()) characters = values[0].text();
  RETURN_IF_ERROR(SpendStrip(text, characters, call.budget));
  return NewText(Strip(text, characters, StripSides()), call.budget);
}

ValueOr Length(const FilterCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  const Value& value = call.value;
  if (value.is_text()) return Value::Int(CharacterCount(value.text()));
  if (value.is_dict()) {
    return Value::Int(static_cast<int64_t>(value.dict().size()));
  }
  if (!value.is_defined()) return Value::Int(0);
  if (value.is_list() || value.Is(Value::Kind::kView)) {
    return Value::Int(static_cast<int64_t>(value.items().size()));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(value.kind_words(), " has no length"));
}

ValueOr ToJson(const FilterCall& call) {
  ASSIGN_OR_RETURN(const auto values,
                   call.arguments.Bind(
                       {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style = {.ascii = values[0].Truth(),
                     .sort_keys = values[3].Truth()};
  const Value& indent = values[1];
  if (indent.is_text()) {
    style.indent = indent.text();
  } else if (indent.is_integer()) {
    if (indent.integer() > 64)
      return absl::InvalidArgumentError("tojson: indent is at most 64");
    style.indent = std::string(std::max<int64_t>(0, indent.integer()), ' ');
  }
  if (style.indent.has_value()) style.item_separator = ",";
  const Value& separators = values[2];
  if (separators.is_list()) {
    const List& pair = separators.items();
    if (pair.size() != 2 || !pair[0].is_text() || !pair[1].is_text()) {
      return absl::InvalidArgumentError("tojson: separators are two strings");
    }
    style.item_separator = pair[0].text();
    style.key_separator = pair[1].text();
  }
  ASSIGN_OR_RETURN(std::string json, JsonOf(call.value, style, call.budget));
  return NewText(std::move(json), call.budget);
}

ValueOr Default(const FilterCall& call) {
  ASSIGN_OR_RETURN(const auto values,
                   call.arguments.Bind({"default_value", "boolean"}));
  const bool takes =
      !call.value.is_defined() || (values[1].Truth() && !call.value.Truth());
  if (!takes) return call.value;
  return values[0].is_defined() ? values[0] : Value::Text("");
}

// The value at a path like "function.name" or "0".
ValueOr AtPath(const Value& value, const Value& path, Budget& budget) {
  if (!path.is_text()) return ItemOf(value, path, budget);
  RETURN_IF_ERROR(budget.SpendRead(path.text().size()));
  Value here = value;
  for (const absl::string_view part : absl::StrSplit(path.text(), '.')) {
    RETURN_IF_ERROR(budget.Spend(1));
    int64_t index = 0;
    const bool is_index = absl::SimpleAtoi(part, &index);
    const Value key =
        is_index ? Value::Int(index) : Value::Text(std::string(part));
    ASSIGN_OR_RETURN(here, ItemOf(here, key, budget));
  }
  return here;
}

ValueOr JoinItems(const FilterCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"d", "attribute"}));
  ASSIGN_OR_RETURN(const List items, ItemsOf(call.value, call.budget));
  ASSIGN_OR_RETURN(const std::string separator, TextOf(values[0], call.budget));
  std::string joined;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (values[1].is_defined()) {
      ASSIGN_OR_RETURN(item, AtPath(item, values[1], call.budget));
    }
    ASSIGN_OR_RETURN(const std::string text, TextOf(item, call.budget));
    RETURN_IF_ERROR(call.budget.SpendRead(separator.size()));
    absl::StrAppend(&joined, i == 0 ? "" : separator, text);
    RETURN_IF_ERROR(call.budget.CheckText(joined.size()));
  }
  return NewText(std::move(joined), call.budget);
}

// `kStepsPerByte`: of a change that takes each character by itself.
template <std::string (*kChange)(absl::string_view), size_t kStepsPerByte = 0>
ValueOr Change(const FilterCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  ASSIGN_OR_RETURN(const std::string text, TextOf(call.value, call.budget));
  RETURN_IF_ERROR(call.budget.Spend(kStepsPerByte * text.size()));
  return NewText(kChange(text), call.budget);
}

std::string Same(absl::string_view text) { return std::string(text); }

// Jinja2's own: words begin behind spaces and opening brackets.
std::string TitleWords(absl::string_view text) {
  std::string out;
  bool begins = true;
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    const uint32_t code = TakeCharacter(text, at);
    const absl::string_view character = text.substr(here, at - here);
    out += begins ? Upper(character) : Lower(character);
    begins = IsSpace(code) || code == '-' || code == '(' || code == '{' ||
             code == '[' || code == '<';
  }
  return out;
}

ValueOr First(const FilterCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  ASSIGN_OR_RETURN(const List items, ItemsOf(call.value, call.budget));
  return items.empty() ? Value::UndefinedNamed("the first of nothing")
                       : items.front();
}

ValueOr Last(const FilterCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  if (call.value.Is(Value::Kind::kIterator)) {
    return absl::InvalidArgumentError(
        "an iterator has no last item; use `| list | last`");
  }
  ASSIGN_OR_RETURN(const List items, ItemsOf(call.value, call.budget));
  return items.empty() ? Value::UndefinedNamed("the last of nothing")
                       : items.back();
}

ValueOr ToList(const FilterCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  ASSIGN_OR_RETURN(List items, ItemsOf(call.value, call.budget));
  return Value::OfList(std::move(items));
}

ValueOr Reverse(const FilterCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  ASSIGN_OR_RETURN(List items, ItemsOf(call.value, call.budget));
  std::reverse(items.begin(), items.end());
  if (!call.value.is_text()) return Value::Iterator(std::move(items));
  std::string text;
  for (const Value& item : items) text += item.text();
  return NewText(std::move(text), call.budget);
}

ValueOr Unique(const FilterCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  ASSIGN_OR_RETURN(const List items, ItemsOf(call.value, call.budget));
  List unique;
  for (const Value& item : items) {
    if (!item.is_number()) {
      return absl::InvalidArgumentError("unique is supported for numbers only");
    }
    ASSIGN_OR_RETURN(const bool is_there, HoldsItem(unique, item, call.budget));
    if (!is_there) unique.push_back(item);
  }
  return Value::Iterator(std::move(unique));
}

ValueOr ItemsFilter(const FilterCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  if (!call.value.is_defined()) return Value::Iterator({});
  if (!call.value.is_dict()) {
    return absl::InvalidArgumentError(
        absl::StrCat("items: ", call.value.kind_words(), " is no mapping"));
  }
  RETURN_IF_ERROR(SpendKeys(call.value.dict(), call.budget));
  return Value::Iterator(PairsOf(call.value.dict()));
}

// Of a key with others, while it is sorted among millions.
constexpr size_t kComparisons = 24;

ValueOr DictSort(const FilterCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  if (!call.value.is_dict()) {
    return absl::InvalidArgumentError(
        absl::StrCat("dictsort: ", call.value.kind_words(), " is no mapping"));
  }
  const Dict& dict = call.value.dict();
  RETURN_IF_ERROR(SpendKeys(dict, call.budget));
  // Keys by their lower case, which may be equal.
  std::vector<std::pair<std::string, Value>> sorted;
  for (const Value& pair : PairsOf(dict)) {
    const std::string& key = pair.items()[0].text();
    RETURN_IF_ERROR(call.budget.SpendRead(kComparisons * key.size()));
    sorted.emplace_back(Lower(key), pair);
  }
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  List pairs;
  for (auto& [key, pair] : sorted) pairs.push_back(std::move(pair));
  return Value::OfList(std::move(pairs));
}

ValueOr ReplaceText(const FilterCall& call) {
  ASSIGN_OR_RETURN(const auto values,
                   call.arguments.Bind({"old", "new", "count"}, 2));
  ASSIGN_OR_RETURN(const std::string text, TextOf(call.value, call.budget));
  ASSIGN_OR_RETURN(const std::string from, TextOf(values[0], call.budget));
  ASSIGN_OR_RETURN(const std::string to, TextOf(values[1], call.budget));
  const int64_t most = values[2].is_integer() ? values[2].integer() : -1;
  RETURN_IF_ERROR(call.budget.SpendSearch(text.size(), from.size()));
  std::optional<std::string> replaced =
      Replace(text, from, to, most, call.budget.text_bytes_max());
  if (!replaced.has_value()) {
    return call.budget.CheckText(call.budget.text_bytes_max() + 1);
  }
  return NewText(*std::move(replaced), call.budget);
}

ValueOr ToInt(const FilterCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"default"}));
  const Value otherwise = values[0].is_defined() ? values[0] : Value::Int(0);
  const Value& value = call.value;
  if (value.is_integer()) return Value::Int(value.integer());
  double number = 0;
  if (value.Is(Value::Kind::kFloat)) {
    number = value.number();
  } else if (value.is_text()) {
    const std::string text = Strip(value.text(), std::nullopt, StripSides());
    int64_t whole = 0;
    if (absl::SimpleAtoi(text, &whole)) return Value::Int(whole);
    if (!absl::SimpleAtod(text, &number)) return otherwise;
  } else {
    return otherwise;
  }
  if (!(std::abs(number) < 9e18)) return otherwise;
  return Value::Int(static_cast<int64_t>(number));
}

ValueOr ToFloat(const FilterCall& call) {
  ASSIGN_OR_RETURN(const auto values, call.arguments.Bind({"default"}));
  const Value otherwise = values[0].is_defined() ? values[0] : Value::Float(0);
  if (call.value.is_number()) return Value::Float(call.value.number());
  double number = 0;
  const bool is_number =
      call.value.is_text() && absl::SimpleAtod(call.value.text(), &number);
  return is_number ? Value::Float(number) : otherwise;
}

ValueOr Abs(const FilterCall& call) {
  RETURN_IF_ERROR(call.arguments.Bind({}).status());
  if (call.value.Is(Value::Kind::kFloat)) {
    return Value::Float(std::abs(call.value.number()));
  }
  if (!call.value.is_integer() ||
      call.value.integer() == std::numeric_limits<int64_t>::min()) {
    return absl::InvalidArgumentError(
        absl::StrCat("abs: of ", call.value.kind_words()));
  }
  return Value::Int(std::abs(call.value.integer()));
}

ValueOr Indent(const FilterCall& call) {
  ASSIGN_OR_RETURN(const auto values,
                   call.arguments.Bind({"width", "first", "blank"}));
  ASSIGN_OR_RETURN(const std::string text, TextOf(call.value, call.budget));
  std::string indent(4, ' ');
  if (values[0].is_text()) indent = values[0].text();
  if (values[0].is_integer()) {
    const int64_t width = values[0].integer();
    if (width > 1024)
      return absl::InvalidArgumentError("indent: the width is at most 1024");
    indent = std::string(std::max<int64_t>(0, width), ' ');
  }
  RETURN_IF_ERROR(call.budget.Spend(CountLines(text)));
  const std::vector<std::string> lines =
      SplitLines(absl::StrCat(text, "\n"), /*keep_ends=*/false);
  std::string out = values[1].Truth() ? indent : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    const bool indents = i > 0 && (values[2].Truth() || !lines[i].empty());
    absl::StrAppend(&out, i == 0 ? "" : "\n", indents ? indent : "", lines[i]);
    RETURN_IF_ERROR(call.budget.SpendRead(indent.size()));
    RETURN_IF_ERROR(call.budget.CheckText(out.size()));
  }
  return NewText(std::move(out), call.budget);
}

// The test and its arguments behind the first `skipped` arguments of a filter.
struct ItemTest {
  std::string name;  // empty: whether the item is true
  Arguments arguments;

  absl::StatusOr<bool> Holds(const Value& value, Budget& budget) const {
    if (name.empty()) return value.Truth();
    return RunTest(name, value, arguments, budget);
  }
};

absl::StatusOr<ItemTest> TestOf(const Arguments& arguments, size_t skipped) {
  if (!arguments.named.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the argument '", arguments.named[0].first, "' is not supported"));
  }
  ItemTest test;
  const std::vector<Value>& given = arguments.positional;
  if (given.size() <= skipped) return test;
  if (!given[skipped].is_text())
    return absl::InvalidArgumentError("the test's name is no string");
  test.name = given[skipped].text();
  test.arguments.positional.assign(given.begin() + skipped + 1, given.end());
  return test;
}

// select, reject: by the item. selectattr, rejectattr: by what is at a path.
template <bool kByPath, bool kKeeps>
ValueOr Select(const FilterCall& call) {
  const std::vector<Value>& given = call.arguments.positional;
  if (kByPath && given.empty())
    return absl::InvalidArgumentError("the attribute is missing");
  ASSIGN_OR_RETURN(const ItemTest test,
                   TestOf(call.arguments, kByPath ? 1 : 0));
  ASSIGN_OR_RETURN(const List items, ItemsOf(call.value, call.budget));
  List kept;
  for (const Value& item : items) {
    Value looked_at = item;
    if (kByPath) {
      ASSIGN_OR_RETURN(looked_at, AtPath(item, given[0], call.budget));
    }
    ASSIGN_OR_RETURN(const bool holds, test.Holds(looked_at, call.budget));
    if (holds == kKeeps) kept.push_back(item);
  }
  return Value::Iterator(std::move(kept));
}

// map(attribute='name', default=...), or map('filter', arguments).
ValueOr Map(const FilterCall& call) {
  ASSIGN_OR_RETURN(const List items, ItemsOf(call.value, call.budget));
  const Arguments& arguments = call.arguments;
  List mapped;
  if (!arguments.positional.empty()) {
    if (!arguments.positional[0].is_text()) {
      return absl::InvalidArgumentError("map: the filter's name is no string");
    }
    // Each would call the next one, as many as there are arguments.
    if (arguments.positional[0].text() == "map") {
      return absl::InvalidArgumentError(
          "map: the filter 'map' within 'map' is not supported");
    }
    Arguments rest = arguments;
    rest.positional.erase(rest.positional.begin());
    for (const Value& item : items) {
      ASSIGN_OR_RETURN(
          mapped.emplace_back(),
          RunFilter(arguments.positional[0].text(), item, rest, call.budget));
    }
    return Value::Iterator(std::move(mapped));
  }
  ASSIGN_OR_RETURN(const auto values,
                   arguments.Bind({"attribute", "default"}, 1));
  for (const Value& item : items) {
    ASSIGN_OR_RETURN(Value value, AtPath(item, values[0], call.budget));
    mapped.push_back(value.is_defined() ? std::move(value) : values[1]);
  }
  return Value::Iterator(std::move(mapped));
}

struct FilterRow {
  absl::string_view name;
  ValueOr (*run)(const FilterCall& call);
};
constexpr FilterRow kFilters[] = {
    {"abs", &Abs},
    {"capitalize", &Change<Capitalize>},
    {"count", &Length},
    {"d", &Default},
    {"default", &Default},
    {"dictsort", &DictSort},
    {"first", &First},
    {"float", &ToFloat},
    {"indent", &Indent},
    {"int", &ToInt},
    {"items", &ItemsFilter},
    {"join", &JoinItems},
    {"last", &Last},
    {"length", &Length},
    {"list", &ToList},
    {"lower", &Change<Lower>},
    {"map", &Map},
    {"reject", &Select<false, false>},
    {"rejectattr", &Select<true, false>},
    {"replace", &ReplaceText},
    {"reverse", &Reverse},
    {"select", &Select<false, true>},
    {"selectattr", &Select<true, true>},
    {"string", &Change<Same>},
    {"title", &Change<TitleWords, 1>},
    {"tojson", &ToJson},
    {"trim", &Trim},
    {"unique", &Unique},
    {"upper", &Change<Upper>},
};

const FilterRow* FindFilter(absl::string_view name) {
  const auto* const row =
      std::find_if(std::begin(kFilters), std::end(kFilters),
                   [&](const FilterRow& r) { return r.name == name; });
  return row == std::end(kFilters) ? nullptr : row;
}

absl::Status NoFilter(absl::string_view name) {
  if (name == "safe") {
    return absl::InvalidArgumentError(
        "the filter 'safe' is supported only as the last one of what is "
        "printed or joined by ~");
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the filter '", name, "' is not supported; there are: ",
      absl::StrJoin(kFilters, ", ", [](std::string* out, const FilterRow& row) {
        absl::StrAppend(out, row.name);
      })));
}

}  // namespace

ValueOr RunFilter(absl::string_view name, const Value& value,
                  const Arguments& arguments, Budget& budget) {
  const FilterRow* const row = FindFilter(name);
  if (row == nullptr) return NoFilter(name);
  RETURN_IF_ERROR(budget.Spend(1));
  if (value.is_text()) RETURN_IF_ERROR(budget.SpendRead(value.text().size()));
  return row->run({value, arguments, budget});
}

}  // namespace troupe::chat
