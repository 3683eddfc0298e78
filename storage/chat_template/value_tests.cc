#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "storage/chat_template/filters.h"
#include "storage/chat_template/methods.h"
#include "storage/chat_template/python_text.h"

namespace troupe::chat {
namespace {

using Kind = Value::Kind;

template <Kind kKind>
bool IsOfKind(const Value& value) {
  return value.Is(kKind);
}
bool IsDefined(const Value& value) { return value.is_defined(); }
bool IsNumber(const Value& value) { return value.is_number(); }
bool IsTrue(const Value& value) {
  return value.Is(Kind::kBool) && value.integer() != 0;
}
bool IsFalse(const Value& value) {
  return value.Is(Kind::kBool) && value.integer() == 0;
}
bool IsIterable(const Value& value) {
  return value.has_items() || value.is_dict() || value.is_text() ||
         !value.is_defined();
}
bool IsSequence(const Value& value) {
  return value.is_list() || value.is_dict() || value.is_text() ||
         !value.is_defined();
}

// Tests of the value alone.
struct KindRow {
  absl::string_view name;
  bool (*holds)(const Value& value);
};
constexpr KindRow kKindTests[] = {
    {"boolean", &IsOfKind<Kind::kBool>},
    {"callable", &IsOfKind<Kind::kMacro>},
    {"defined", &IsDefined},
    {"false", &IsFalse},
    {"float", &IsOfKind<Kind::kFloat>},
    {"integer", &IsOfKind<Kind::kInt>},
    {"iterable", &IsIterable},
    {"mapping", &IsOfKind<Kind::kDict>},
    {"none", &IsOfKind<Kind::kNone>},
    {"number", &IsNumber},
    {"sequence", &IsSequence},
    {"string", &IsOfKind<Kind::kText>},
    {"true", &IsTrue},
    {"undefined", &IsOfKind<Kind::kUndefined>},
};

using BoolOr = absl::StatusOr<bool>;

BoolOr AreUnequal(const Value& a, const Value& b, Budget& budget) {
  ASSIGN_OR_RETURN(const bool equal, Equals(a, b, budget));
  return !equal;
}
BoolOr Greater(const Value& a, const Value& b, Budget& budget) {
  return IsLess(b, a, budget);
}
BoolOr AtMost(const Value& a, const Value& b, Budget& budget) {
  ASSIGN_OR_RETURN(const bool greater, IsLess(b, a, budget));
  return !greater;
}
BoolOr AtLeast(const Value& a, const Value& b, Budget& budget) {
  ASSIGN_OR_RETURN(const bool less, IsLess(a, b, budget));
  return !less;
}
BoolOr IsIn(const Value& a, const Value& b, Budget& budget) {
  return Contains(b, a, budget);
}
BoolOr DivisibleBy(const Value& a, const Value& b, Budget&) {
  if (!a.is_integer() || !b.is_integer() || b.integer() <= 0) {
    return absl::InvalidArgumentError(
        "divisibleby is supported for whole numbers above 0");
  }
  return a.integer() % b.integer() == 0;
}

// Tests with one argument.
struct PairRow {
  absl::string_view name;
  BoolOr (*holds)(const Value& a, const Value& b, Budget& budget);
};
constexpr PairRow kPairTests[] = {
    {"!=", &AreUnequal},
    {"<", &IsLess},
    {"<=", &AtMost},
    {"==", &Equals},
    {">", &Greater},
    {">=", &AtLeast},
    {"divisibleby", &DivisibleBy},
    {"eq", &Equals},
    {"equalto", &Equals},
    {"ge", &AtLeast},
    {"greaterthan", &Greater},
    {"gt", &Greater},
    {"in", &IsIn},
    {"le", &AtMost},
    {"lessthan", &IsLess},
    {"lt", &IsLess},
    {"ne", &AreUnequal},
};

template <typename Row, size_t kRows>
const Row* FindRow(const Row (&rows)[kRows], absl::string_view name) {
  const auto* const row =
      std::find_if(std::begin(rows), std::end(rows),
                   [&](const Row& r) { return r.name == name; });
  return row == std::end(rows) ? nullptr : row;
}

BoolOr IsOddOrEven(const Value& value, bool odd) {
  if (!value.is_integer()) {
    return absl::InvalidArgumentError(
        absl::StrCat(value.kind_words(), " is neither odd nor even"));
  }
  return (value.integer() % 2 != 0) == odd;
}

absl::Status NoTest(absl::string_view name) {
  const auto add_name = [](std::string* out, const auto& row) {
    absl::StrAppend(out, row.name);
  };
  return absl::InvalidArgumentError(absl::StrCat(
      "the test '", name, "' is not supported; there are: even, odd, ",
      absl::StrJoin(kKindTests, ", ", add_name), ", ",
      absl::StrJoin(kPairTests, ", ", add_name)));
}

}  // namespace

BoolOr RunTest(absl::string_view name, const Value& value,
               const Arguments& arguments, Budget& budget) {
  RETURN_IF_ERROR(budget.Spend(1));
  const PairRow* const pair = FindRow(kPairTests, name);
  if (pair != nullptr) {
    ASSIGN_OR_RETURN(const auto values, arguments.Bind({"other"}, 1));
    return pair->holds(value, values[0], budget);
  }
  const KindRow* const kind = FindRow(kKindTests, name);
  if (kind != nullptr) {
    RETURN_IF_ERROR(arguments.Bind({}).status());
    return kind->holds(value);
  }
  if (name == "odd" || name == "even") {
    return IsOddOrEven(value, name == "odd");
  }
  return NoTest(name);
}

absl::StatusOr<Value> ItemOf(const Value& value, const Value& key,
                             Budget& budget) {
  if (!value.is_defined()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", value.name(), "' is undefined"));
  }
  if (key.is_text()) {
    RETURN_IF_ERROR(budget.SpendRead(key.text().size()));
    const Value* const found =
        value.is_dict() ? value.dict().Find(key.text()) : nullptr;
    return found != nullptr ? *found : AttributeOf(value, key.text());
  }
  if (!key.is_integer()) return Value::UndefinedNamed("an item");
  int64_t index = key.integer();
  const auto place = [&](int64_t size) {
    return index < 0 ? index + size : index;
  };
  if (value.is_list()) {
    const auto size = static_cast<int64_t>(value.items().size());
    index = place(size);
    if (index >= 0 && index < size) return value.items()[index];
  } else if (value.is_text()) {
    const absl::string_view text = value.text();
    RETURN_IF_ERROR(budget.SpendRead(text.size()));
    const int64_t size = CharacterCount(text);
    index = place(size);
    if (index >= 0 && index < size) {
      const size_t begin = PlaceOfCharacter(text, index);
      const size_t bytes = PlaceOfCharacter(text.substr(begin), 1);
      return Value::Text(std::string(text.substr(begin, bytes)));
    }
  } else if (value.Is(Kind::kView)) {
    return absl::InvalidArgumentError(
        "items of a view by their number are not supported; use `| list`");
  }
  return Value::UndefinedNamed(absl::StrCat("item ", key.integer()));
}

BoolOr Contains(const Value& value, const Value& item, Budget& budget) {
  if (value.is_text()) {
    if (!item.is_text()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "only a string can be in a string, not ", item.kind_words()));
    }
    RETURN_IF_ERROR(
        budget.SpendSearch(value.text().size(), item.text().size()));
    return absl::StrContains(value.text(), item.text());
  }
  if (value.is_dict()) {
    if (!item.is_text()) return false;
    RETURN_IF_ERROR(budget.SpendRead(item.text().size()));
    return value.dict().Find(item.text()) != nullptr;
  }
  ASSIGN_OR_RETURN(const List items, ItemsOf(value, budget));
  return HoldsItem(items, item, budget);
}

BoolOr HoldsItem(const List& items, const Value& item, Budget& budget) {
  for (const Value& other : items) {
    ASSIGN_OR_RETURN(const bool is_it, Equals(item, other, budget));
    if (is_it) return true;
  }
  return false;
}

BoolOr IsLess(const Value& a, const Value& b, Budget& budget) {
  if (a.is_integer() && b.is_integer()) return a.integer() < b.integer();
  if (a.is_number() && b.is_number()) return a.number() < b.number();
  if (a.is_text() && b.is_text()) {
    RETURN_IF_ERROR(
        budget.SpendRead(std::min(a.text().size(), b.text().size())));
    return a.text() < b.text();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      a.kind_words(), " and ", b.kind_words(), " cannot be put in order"));
}

}  // namespace troupe::chat
