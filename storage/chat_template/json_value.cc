#include "storage/chat_template/json_value.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace troupe::chat {
namespace {

constexpr size_t kLevelsMax = 100;

class ValueReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return Add(Value::None()); }
  bool boolean(bool value) override { return Add(Value::Bool(value)); }
  bool number_integer(number_integer_t value) override {
    return Add(Value::Int(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return TooLarge();
    }
    return Add(Value::Int(static_cast<int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    // A whole number that 64 bits do not hold comes as one.
    if (text.find_first_of(".eE") == std::string::npos) return TooLarge();
    return Add(Value::Float(value));
  }
  bool binary(binary_t&) override { return false; }
  bool string(string_t& value) override {
    return Add(Value::Text(std::move(value)));
  }
  bool start_object(size_t) override { return Open(true); }
  bool start_array(size_t) override { return Open(false); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    open_.back().key = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    wrong_ = absl::StrCat("is not valid JSON in UTF-8 (byte ", position, ")");
    return false;
  }

  absl::StatusOr<Value> Take() {
    if (wrong_.empty()) return std::move(value_);
    return absl::InvalidArgumentError(wrong_);
  }

 private:
  // A list or object that is not closed yet.
  struct Level {
    bool is_object = false;
    std::string key;
    List items;
    Dict dict;
  };

  bool TooLarge() {
    wrong_ = "has a whole number of more than 64 bits";
    return false;
  }
  bool Open(bool is_object) {
    if (open_.size() == kLevelsMax) {
      wrong_ = absl::StrCat("has more than ", kLevelsMax,
                            " levels of lists and objects");
      return false;
    }
    open_.push_back({.is_object = is_object});
    return true;
  }
  bool Close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    return Add(level.is_object ? Value::OfDict(std::move(level.dict))
                               : Value::OfList(std::move(level.items)));
  }
  bool Add(Value value) {
    if (open_.empty()) {
      value_ = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().dict.Set(std::move(open_.back().key), std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
    return true;
  }

  std::vector<Level> open_;
  Value value_;
  std::string wrong_;
};

}  // namespace

absl::StatusOr<Value> ParseJson(absl::string_view text) {
  ValueReader reader;
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.Take();
}

}  // namespace troupe::chat
