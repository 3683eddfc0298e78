#include "storage/chat_template/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/chat_template/filters.h"
#include "storage/chat_template/python_text.h"
#include "storage/chat_template/value_text.h"

namespace troupe::chat {
namespace {

using ValueOr = absl::StatusOr<Value>;

absl::Status NoSuch(absl::string_view sign, const Value& left,
                    const Value& right) {
  const auto words = [](const Value& value) {
    const bool has_name = !value.is_defined() && !value.name().empty();
    return has_name ? absl::StrCat("'", value.name(), "', which is undefined,")
                    : std::string(value.kind_words());
  };
  return absl::InvalidArgumentError(
      absl::StrCat("'", sign, "' between ", words(left), " and ", words(right),
                   " is not supported"));
}

// Python rounds towards minus infinity.
int64_t FloorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

ValueOr OfIntegers(absl::string_view sign, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  if (sign == "+") {
    overflows = __builtin_add_overflow(a, b, &result);
  } else if (sign == "-") {
    overflows = __builtin_sub_overflow(a, b, &result);
  } else if (sign == "*") {
    overflows = __builtin_mul_overflow(a, b, &result);
  } else {
    if (b == 0) return absl::InvalidArgumentError("a division by zero");
    if (sign == "/") {
      return Value::Float(static_cast<double>(a) / static_cast<double>(b));
    }
    overflows = a == std::numeric_limits<int64_t>::min() && b == -1;
    if (!overflows) {
      result = sign == "//" ? FloorDivide(a, b) : a - FloorDivide(a, b) * b;
    }
  }
  if (overflows) return absl::InvalidArgumentError("a number leaves 64 bits");
  return Value::Int(result);
}

ValueOr OfFloats(absl::string_view sign, double a, double b) {
  if (sign == "+") return Value::Float(a + b);
  if (sign == "-") return Value::Float(a - b);
  if (sign == "*") return Value::Float(a * b);
  if (b == 0) return absl::InvalidArgumentError("a division by zero");
  if (sign == "/") return Value::Float(a / b);
  if (sign == "//") return Value::Float(std::floor(a / b));
  const double rest = std::fmod(a, b);
  return Value::Float(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

ValueOr AddLists(const Value& left, const Value& right, Budget& budget) {
  RETURN_IF_ERROR(budget.Spend(left.items().size() + right.items().size()));
  List items = left.items();
  items.insert(items.end(), right.items().begin(), right.items().end());
  return left.Is(Value::Kind::kTuple) ? Value::Tuple(std::move(items))
                                      : Value::OfList(std::move(items));
}

ValueOr RepeatText(const std::string& text, int64_t times, Budget& budget) {
  if (times <= 0 || text.empty()) return Value::Text("");
  if (static_cast<size_t>(times) > budget.text_bytes_max() / text.size()) {
    return budget.CheckText(budget.text_bytes_max() + 1);
  }
  std::string repeated;
  for (int64_t i = 0; i < times; ++i) repeated += text;
  return NewText(std::move(repeated), budget);
}

// Where a slice begins and ends, and how it goes, within `size` items.
struct SlicePlaces {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t step = 1;
};

SlicePlaces PlacesOf(const SliceBounds& bounds, int64_t size) {
  SlicePlaces places;
  places.step = bounds.step.value_or(1);
  const bool forward = places.step > 0;
  const int64_t lowest = forward ? 0 : -1;
  const int64_t highest = forward ? size : size - 1;
  const auto place = [&](int64_t bound) {
    if (bound < 0) bound += size;
    return std::clamp(bound, lowest, highest);
  };
  places.begin = bounds.begin.has_value() ? place(*bounds.begin)
                 : forward                ? lowest
                                          : highest;
  places.end = bounds.end.has_value() ? place(*bounds.end)
               : forward              ? highest
                                      : lowest;
  return places;
}

// Calls each(place) for the places of a slice, in its order.
void ForEachPlace(const SlicePlaces& places,
                  absl::FunctionRef<void(int64_t place)> each) {
  for (int64_t at = places.begin;
       places.step > 0 ? at < places.end : at > places.end;) {
    each(at);
    if (__builtin_add_overflow(at, places.step, &at)) break;
  }
}

ValueOr SliceOfText(const std::string& text, const SliceBounds& bounds,
                    Budget& budget) {
  RETURN_IF_ERROR(budget.SpendRead(text.size()));
  const SlicePlaces places = PlacesOf(bounds, CharacterCount(text));
  if (places.step == 1) {
    const size_t begin = PlaceOfCharacter(text, places.begin);
    const size_t end = PlaceOfCharacter(text, places.end);
    return NewText(begin < end ? text.substr(begin, end - begin) : "", budget);
  }
  RETURN_IF_ERROR(budget.Spend(text.size()));
  const std::vector<std::string> characters = CharactersOf(text);
  std::string sliced;
  ForEachPlace(places, [&](int64_t at) { sliced += characters[at]; });
  return NewText(std::move(sliced), budget);
}

}  // namespace

ValueOr SignedOf(absl::string_view sign, const Value& value) {
  if (value.Is(Value::Kind::kFloat)) {
    return Value::Float(sign == "-" ? -value.number() : value.number());
  }
  if (value.is_integer()) {
    return sign == "-" ? OfIntegers("-", 0, value.integer())
                       : Value::Int(value.integer());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", sign, "' before ", value.kind_words(), " is not supported"));
}

ValueOr Combine(absl::string_view sign, const Value& left, const Value& right,
                Budget& budget) {
  if (sign == "~") {
    ASSIGN_OR_RETURN(const std::string a, TextOf(left, budget));
    ASSIGN_OR_RETURN(const std::string b, TextOf(right, budget));
    return NewText(absl::StrCat(a, b), budget);
  }
  if (sign == "**") return NoSuch(sign, left, right);
  if (left.is_integer() && right.is_integer()) {
    return OfIntegers(sign, left.integer(), right.integer());
  }
  if (left.is_number() && right.is_number()) {
    return OfFloats(sign, left.number(), right.number());
  }
  if (sign == "+" && left.is_text() && right.is_text()) {
    return NewText(absl::StrCat(left.text(), right.text()), budget);
  }
  if (sign == "+" && left.is_list() && left.kind() == right.kind()) {
    return AddLists(left, right, budget);
  }
  if (sign == "*" && left.is_text() && right.is_integer()) {
    return RepeatText(left.text(), right.integer(), budget);
  }
  return NoSuch(sign, left, right);
}

absl::StatusOr<bool> HoldsBetween(absl::string_view sign, const Value& left,
                                  const Value& right, Budget& budget) {
  if (sign == "==") return Equals(left, right, budget);
  if (sign == "!=") {
    ASSIGN_OR_RETURN(const bool equal, Equals(left, right, budget));
    return !equal;
  }
  if (sign == "in") return Contains(right, left, budget);
  if (sign == "not in") {
    ASSIGN_OR_RETURN(const bool is_in, Contains(right, left, budget));
    return !is_in;
  }
  if (sign == "<") return IsLess(left, right, budget);
  if (sign == ">") return IsLess(right, left, budget);
  const bool at_most = sign == "<=";
  ASSIGN_OR_RETURN(const bool beyond, at_most ? IsLess(right, left, budget)
                                              : IsLess(left, right, budget));
  return !beyond;
}

ValueOr Slice(const Value& value, const SliceBounds& bounds, Budget& budget) {
  if (bounds.step == 0)
    return absl::InvalidArgumentError("the step of a slice is 0");
  if (value.is_text()) return SliceOfText(value.text(), bounds, budget);
  if (!value.is_list()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a slice of ", value.kind_words(), " is not supported"));
  }
  RETURN_IF_ERROR(budget.Spend(value.items().size()));
  List items;
  ForEachPlace(PlacesOf(bounds, static_cast<int64_t>(value.items().size())),
               [&](int64_t at) { items.push_back(value.items()[at]); });
  return value.Is(Value::Kind::kTuple) ? Value::Tuple(std::move(items))
                                       : Value::OfList(std::move(items));
}

}  // namespace troupe::chat
