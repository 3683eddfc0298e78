#include "storage/chat_template/value.h"

#include <algorithm>
#include <utility>

#include "proto/base/status.h"

namespace troupe::chat {

Value Value::UndefinedNamed(std::string name) {
  return Value(Undefined{std::move(name)});
}

Value Value::None() { return Value(NoneType{}); }

Value Value::Text(std::string text) {
  return Value(std::make_shared<const std::string>(std::move(text)));
}

Value Value::OfSequence(List items, Kind kind) {
  int depth = 1;
  for (const Value& item : items) depth = std::max(depth, item.depth() + 1);
  return Value(std::make_shared<const Sequence>(
      Sequence{.items = std::move(items), .kind = kind, .depth = depth}));
}

Value Value::OfList(List items) {
  return OfSequence(std::move(items), Kind::kList);
}

Value Value::Tuple(List items) {
  return OfSequence(std::move(items), Kind::kTuple);
}

Value Value::View(List items) {
  return OfSequence(std::move(items), Kind::kView);
}

Value Value::Iterator(List items) {
  return OfSequence(std::move(items), Kind::kIterator);
}

Value Value::OfDict(Dict dict) {
  return Value(std::make_shared<const Dict>(std::move(dict)));
}

Value::Kind Value::kind() const {
  switch (data_.index()) {
    case 0:
      return Kind::kUndefined;
    case 1:
      return Kind::kNone;
    case 2:
      return Kind::kBool;
    case 3:
      return Kind::kInt;
    case 4:
      return Kind::kFloat;
    case 5:
      return Kind::kText;
    case 6:
      return std::get<std::shared_ptr<const Sequence>>(data_)->kind;
    case 7:
      return Kind::kDict;
    case 8:
      return Kind::kNamespace;
    default:
      return Kind::kMacro;
  }
}

const char* Value::kind_words() const {
  switch (kind()) {
    case Kind::kUndefined:
      return "undefined";
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return "a truth value";
    case Kind::kInt:
    case Kind::kFloat:
      return "a number";
    case Kind::kText:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kTuple:
      return "a tuple";
    case Kind::kView:
      return "a view";
    case Kind::kIterator:
      return "an iterator";
    case Kind::kDict:
      return "a mapping";
    case Kind::kNamespace:
      return "a namespace";
    case Kind::kMacro:
      return "a function";
  }
  return "";
}

bool Value::is_number() const { return is_integer() || Is(Kind::kFloat); }

const std::string& Value::name() const {
  return std::get<Undefined>(data_).name;
}

int64_t Value::integer() const {
  return Is(Kind::kBool) ? std::get<bool>(data_) : std::get<int64_t>(data_);
}

double Value::number() const {
  return Is(Kind::kFloat) ? std::get<double>(data_)
                          : static_cast<double>(integer());
}

const std::string& Value::text() const {
  return *std::get<std::shared_ptr<const std::string>>(data_);
}

const List& Value::items() const {
  return std::get<std::shared_ptr<const Sequence>>(data_)->items;
}

bool Value::ReadBefore() const {
  const Sequence& sequence = *std::get<std::shared_ptr<const Sequence>>(data_);
  return std::exchange(sequence.read, true);
}

const Dict& Value::dict() const {
  return *std::get<std::shared_ptr<const Dict>>(data_);
}

Namespace& Value::space() const { return *std::get<Namespace*>(data_); }

const Statement* Value::macro() const {
  return std::get<const Statement*>(data_);
}

bool Value::Truth() const {
  switch (kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return integer() != 0;
    case Kind::kFloat:
      return number() != 0;
    case Kind::kText:
      return !text().empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return !items().empty();
    case Kind::kDict:
      return dict().size() > 0;
    case Kind::kIterator:
    case Kind::kNamespace:
    case Kind::kMacro:
      return true;
  }
  return false;
}

int Value::depth() const {
  if (has_items()) {
    return std::get<std::shared_ptr<const Sequence>>(data_)->depth;
  }
  return is_dict() ? dict().depth() : 0;
}

void Dict::Set(std::string key, Value value) {
  depth_ = std::max(depth_, value.depth() + 1);
  const auto [place, is_new] = places_.emplace(key, entries_.size());
  if (is_new) {
    entries_.emplace_back(std::move(key), std::move(value));
  } else {
    entries_[place->second].second = std::move(value);
  }
}

const Value* Dict::Find(absl::string_view key) const {
  const auto place = places_.find(key);
  return place == places_.end() ? nullptr : &entries_[place->second].second;
}

namespace {

absl::StatusOr<bool> SequencesEqual(const List& a, const List& b,
                                    Budget& budget) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    ASSIGN_OR_RETURN(const bool equal, Equals(a[i], b[i], budget));
    if (!equal) return false;
  }
  return true;
}

absl::StatusOr<bool> DictsEqual(const Dict& a, const Dict& b, Budget& budget) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    RETURN_IF_ERROR(budget.SpendRead(key.size()));
    const Value* const other = b.Find(key);
    if (other == nullptr) return false;
    ASSIGN_OR_RETURN(const bool equal, Equals(value, *other, budget));
    if (!equal) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> Equals(const Value& a, const Value& b, Budget& budget) {
  RETURN_IF_ERROR(budget.Spend(1));
  if (a.is_integer() && b.is_integer()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Value::Kind::kUndefined:
    case Value::Kind::kNone:
      return true;
    case Value::Kind::kText:
      RETURN_IF_ERROR(budget.SpendRead(a.text().size()));
      return a.text() == b.text();
    case Value::Kind::kList:
    case Value::Kind::kTuple:
      return SequencesEqual(a.items(), b.items(), budget);
    case Value::Kind::kDict:
      return DictsEqual(a.dict(), b.dict(), budget);
    case Value::Kind::kNamespace:
      return &a.space() == &b.space();
    case Value::Kind::kMacro:
      return a.macro() == b.macro();
    default:
      return false;
  }
}

}  // namespace troupe::chat
