#include "storage/checkpoint/strict_json.h"

#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

using nlohmann::json;

// Watches the parser for keys that come twice in one object, of which the
// library would silently keep the last.
class DuplicateKeys {
 public:
  void See(json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start) seen_.emplace_back();
    if (event == json::parse_event_t::object_end) seen_.pop_back();
    if (event != json::parse_event_t::key) return;
    std::string key = parsed.get<std::string>();
    if (!seen_.back().insert(key).second) twice_ = std::move(key);
  }
  const std::string& twice() const { return twice_; }

 private:
  std::vector<std::set<std::string>> seen_;  // one an open object
  std::string twice_;
};

absl::StatusOr<const json*> Field(const json& object, const char* key) {
  if (!object.is_object()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "expected an object with \"", key, "\", found ", object.type_name()));
  }
  const auto it = object.find(key);
  if (it == object.end()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", key, "\" is missing"));
  }
  return &*it;
}

// Numbers that come from our own code may be signed, those from text are not.
bool IsUint(const json& value) {
  return value.is_number_unsigned() ||
         (value.is_number_integer() && value.get<int64_t>() >= 0);
}

absl::Status WrongType(const char* key, absl::string_view wanted,
                       const json& found) {
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", key, "\" must be ", wanted, ", found ", found.type_name()));
}

}  // namespace

absl::StatusOr<json> ParseJsonObject(absl::string_view text) {
  DuplicateKeys keys;
  json parsed;
  try {
    parsed = json::parse(text.begin(), text.end(),
                         [&keys](int, json::parse_event_t event, json& value) {
                           keys.See(event, value);
                           return true;
                         });
  } catch (const json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("not JSON at byte ", error.byte));
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not JSON: ", error.what()));
  }
  if (!keys.twice().empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", keys.twice(), "\" is there twice"));
  }
  if (!parsed.is_object()) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected an object, found ", parsed.type_name()));
  }
  return parsed;
}

std::string FormatJson(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<std::string> StringField(const json& object, const char* key) {
  ASSIGN_OR_RETURN(const json* const field, Field(object, key));
  if (!field->is_string()) return WrongType(key, "a string", *field);
  return field->get<std::string>();
}

absl::StatusOr<uint64_t> UintField(const json& object, const char* key) {
  ASSIGN_OR_RETURN(const json* const field, Field(object, key));
  if (!IsUint(*field)) {
    return WrongType(key, "an integer >= 0", *field);
  }
  return field->get<uint64_t>();
}

absl::StatusOr<double> NumberField(const json& object, const char* key) {
  ASSIGN_OR_RETURN(const json* const field, Field(object, key));
  if (!field->is_number()) return WrongType(key, "a number", *field);
  return field->get<double>();
}

absl::StatusOr<std::vector<int64_t>> IntsField(const json& object,
                                               const char* key) {
  ASSIGN_OR_RETURN(const json* const field, ArrayField(object, key));
  std::vector<int64_t> values;
  for (const json& item : *field) {
    if (!IsUint(item) ||
        item.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
      return WrongType(key, "a list of integers from 0 to 2^63 - 1", item);
    }
    values.push_back(item.get<int64_t>());
  }
  return values;
}

absl::StatusOr<bool> FlagField(const json& object, const char* key) {
  const auto field = object.find(key);
  if (field == object.end()) return false;
  if (!field->is_boolean()) return WrongType(key, "true or false", *field);
  return field->get<bool>();
}

absl::StatusOr<const json*> ArrayField(const json& object, const char* key) {
  ASSIGN_OR_RETURN(const json* const field, Field(object, key));
  if (!field->is_array()) return WrongType(key, "a list", *field);
  return field;
}

}  // namespace troupe
