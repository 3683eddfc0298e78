#include "storage/corpus/json_field.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "storage/dataset/utf8.h"

namespace troupe {
namespace {

constexpr size_t kNamesShown = 8;

// Keeps one field of the outermost object, and builds nothing of the rest.
class FieldReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FieldReader(absl::string_view field) : field_(field) {}

  bool null() override { return Other("null"); }
  bool boolean(bool) override { return Other("a truth value"); }
  bool number_integer(number_integer_t) override { return Other("a number"); }
  bool number_unsigned(number_unsigned_t) override { return Other("a number"); }
  bool number_float(number_float_t, const string_t&) override {
    return Other("a number");
  }
  bool binary(binary_t&) override { return Other("bytes"); }
  bool string(string_t& value) override {
    if (depth_ == 0) return Other("a text");
    if (IsField()) {
      text_ = std::move(value);
      found_.clear();
    }
    return true;
  }
  bool start_object(size_t) override {
    if (depth_ == 0) is_object_ = true;
    if (depth_ == 1) Other("an object");
    ++depth_;
    return true;
  }
  bool start_array(size_t) override {
    Other("a list");
    ++depth_;
    return true;
  }
  bool end_object() override { return End(); }
  bool end_array() override { return End(); }
  bool key(string_t& name) override {
    if (depth_ != 1) return true;
    is_field_ = name == field_;
    if (!is_field_ && names_.size() < kNamesShown) names_.push_back(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    wrong_at_ = position;
    return false;
  }

  absl::StatusOr<std::string> Take() {
    if (!is_object_) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", found_, ", not an object"));
    }
    if (!found_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "its field \"", field_, "\" is ", found_, ", not a text"));
    }
    if (text_.has_value()) return *std::move(text_);
    return absl::InvalidArgumentError(absl::StrCat(
        "has no field \"", field_, "\"",
        names_.empty()
            ? ""
            : absl::StrCat("; it has ", absl::StrJoin(names_, ", "))));
  }

  size_t wrong_at() const { return wrong_at_; }

 private:
  bool IsField() const { return depth_ == 1 && is_field_; }
  // A value that is no text.
  bool Other(const char* what) {
    if (depth_ == 0) found_ = what;
    if (IsField()) {
      found_ = what;
      text_.reset();
    }
    return true;
  }
  bool End() {
    --depth_;
    return true;
  }

  const absl::string_view field_;
  int64_t depth_ = 0;
  bool is_object_ = false;
  bool is_field_ = false;  // the value that follows
  std::optional<std::string> text_;
  std::string found_;  // in place of a text
  std::vector<std::string> names_;
  size_t wrong_at_ = 0;
};

// The byte at which a line stops being UTF-8.
std::optional<size_t> FirstInvalid(absl::string_view line) {
  for (size_t at = 0; at < line.size();) {
    const size_t bytes = CharacterBytes(line.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<std::string> JsonTextField(absl::string_view line,
                                          absl::string_view field) {
  FieldReader reader(field);
  if (nlohmann::json::sax_parse(line.begin(), line.end(), &reader)) {
    return reader.Take();
  }
  const std::optional<size_t> invalid = FirstInvalid(line);
  if (invalid.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("is not in UTF-8 (byte ", *invalid + 1, ")"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("is not valid JSON (byte ", reader.wrong_at(), ")"));
}

}  // namespace troupe
