// A value of a chat template: what Python and Jinja call None, bool, int,
// float, str, list, tuple, dict, and Jinja's Undefined and namespace. Lists,
// dicts and texts never change once they are made, so copies share them.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_VALUE_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_VALUE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/chat_template/budget.h"

namespace troupe::chat {

class Value;
class Dict;
struct Statement;  // of a macro; syntax.h

using List = std::vector<Value>;
// Of `namespace()`. Belongs to the rendering.
using Namespace = std::map<std::string, Value>;

class Value {
 public:
  enum class Kind {
    kUndefined,
    kNone,
    kBool,
    kInt,
    kFloat,
    kText,
    kList,
    kTuple,
    kView,      // dict.items() and its like, range(): no index, no text
    kIterator,  // of filters like selectattr: read once, true even if empty
    kDict,
    kNamespace,
    kMacro,
  };

  Value() : data_(Undefined{}) {}  // undefined, without a name
  static Value UndefinedNamed(std::string name);
  static Value None();
  static Value Bool(bool value) { return Value(value); }
  static Value Int(int64_t value) { return Value(value); }
  static Value Float(double value) { return Value(value); }
  static Value Text(std::string text);
  static Value OfList(List items);
  static Value Tuple(List items);
  static Value View(List items);
  static Value Iterator(List items);
  static Value OfDict(Dict dict);
  static Value OfNamespace(Namespace* space) { return Value(space); }
  // Null: a function that Jinja or transformers define.
  static Value Macro(const Statement* macro) { return Value(macro); }

  Kind kind() const;
  // "a text", "a list": for messages.
  const char* kind_words() const;
  bool Is(Kind kind) const { return this->kind() == kind; }
  bool is_defined() const { return !Is(Kind::kUndefined); }
  bool is_text() const { return Is(Kind::kText); }
  bool is_list() const { return Is(Kind::kList) || Is(Kind::kTuple); }
  bool has_items() const {
    return is_list() || Is(Kind::kView) || Is(Kind::kIterator);
  }
  bool is_dict() const { return Is(Kind::kDict); }
  // bool, int or float. Python's bool is a number.
  bool is_number() const;
  bool is_integer() const { return Is(Kind::kBool) || Is(Kind::kInt); }

  // Each requires the kind.
  const std::string& name() const;  // of what is undefined
  int64_t integer() const;          // of an int or bool
  double number() const;            // of a number
  const std::string& text() const;
  const List& items() const;  // has_items()
  // Of an iterator: whether it was read before. From now on it was.
  bool ReadBefore() const;
  const Dict& dict() const;
  Namespace& space() const;
  const Statement* macro() const;

  // As in `if value`.
  bool Truth() const;

  // How many lists and dicts lie within each other: 0 for what holds no values,
  // and for a namespace, which is held by its name only. What goes through a
  // value calls itself that number of times, and so does what frees it.
  int depth() const;

 private:
  struct Undefined {
    std::string name;
  };
  struct NoneType {};
  struct Sequence {
    List items;
    Kind kind = Kind::kList;
    int depth = 1;
    mutable bool read = false;
  };
  static Value OfSequence(List items, Kind kind);
  using Data =
      std::variant<Undefined, NoneType, bool, int64_t, double,
                   std::shared_ptr<const std::string>,
                   std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>,
                   Namespace*, const Statement*>;
  template <typename T>
  explicit Value(T data) : data_(std::move(data)) {}

  Data data_;
};

// In the order in which keys came. A key is a text.
class Dict {
 public:
  // A key that is there keeps its place and gets the value.
  void Set(std::string key, Value value);
  // Null where there is none.
  const Value* Find(absl::string_view key) const;
  size_t size() const { return entries_.size(); }
  // As Value::depth(), of all values that were ever set.
  int depth() const { return depth_; }
  const std::vector<std::pair<std::string, Value>>& entries() const {
    return entries_;
  }

 private:
  std::vector<std::pair<std::string, Value>> entries_;
  absl::flat_hash_map<std::string, size_t> places_;
  int depth_ = 1;
};

// Python's ==. Numbers are compared by value; a list never equals a tuple.
// ResourceExhausted past the budget.
absl::StatusOr<bool> Equals(const Value& a, const Value& b, Budget& budget);

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_VALUE_H_
