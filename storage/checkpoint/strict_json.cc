#include "storage/checkpoint/strict_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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

// Numbers that Python writes and the library does not read. On their way
// through it each is a text of the same length, so that the bytes of errors
// stay the file's, and of characters that no file has alone.
struct PythonNumber {
  absl::string_view name;
  absl::string_view stand_in;  // as JSON
  absl::string_view text;      // which that is
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr PythonNumber kPythonNumbers[] = {
    {"NaN", "\"\x7f\"", "\x7f", std::numeric_limits<double>::quiet_NaN()},
    {"Infinity", "\"\\u0001\"", "\x01", kInfinity},
    {"-Infinity", " \"\\u0002\"", "\x02", -kInfinity},
};

// Outside of texts only.
std::string WithStandIns(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_text = false;
  while (!text.empty()) {
    size_t bytes = 1;
    absl::string_view add = text.substr(0, 1);
    if (in_text && text[0] == '\\') add = text.substr(0, bytes = 2);
    if (text[0] == '"') in_text = !in_text;
    for (const PythonNumber& number : kPythonNumbers) {
      if (in_text || !absl::StartsWith(text, number.name)) continue;
      add = number.stand_in;
      bytes = number.name.size();
    }
    out.append(add.data(), add.size());
    text.remove_prefix(std::min(bytes, text.size()));
  }
  return out;
}

void ToNumbers(json& value) {
  if (value.is_structured()) {
    for (json& item : value) ToNumbers(item);
  }
  if (!value.is_string()) return;
  for (const PythonNumber& number : kPythonNumbers) {
    if (value.get_ref<const std::string&>() != number.text) continue;
    value = number.value;
    return;
  }
}

void ToStandIns(json& value) {
  if (value.is_structured()) {
    for (json& item : value) ToStandIns(item);
  }
  if (!value.is_number_float() || std::isfinite(value.get<double>())) return;
  const double number = value.get<double>();
  value = kPythonNumbers[std::isnan(number) ? 0 : number > 0 ? 1 : 2].text;
}

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
  return ParseJsonObject(text,
                         [](absl::string_view, const json&) { return false; });
}

absl::StatusOr<json> ParseJsonObject(absl::string_view text, TakeElement take) {
  constexpr int kFieldDepth = 1;
  DuplicateKeys keys;
  std::string field;  // of the outermost object, that is being parsed
  absl::Status taken;
  json parsed;
  try {
    parsed = json::parse(
        text.begin(), text.end(),
        [&](int depth, json::parse_event_t event, json& value) {
          keys.See(event, value);
          if (event == json::parse_event_t::key && depth == kFieldDepth) {
            field = value.get<std::string>();
          }
          if (event != json::parse_event_t::object_end ||
              depth != kFieldDepth + 1 || !taken.ok()) {
            return true;
          }
          const absl::StatusOr<bool> takes = take(field, value);
          taken = takes.status();
          return !takes.value_or(false);
        });
  } catch (const json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("not JSON at byte ", error.byte));
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not JSON: ", error.what()));
  }
  RETURN_IF_ERROR(taken);
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

absl::StatusOr<json> ParsePythonJsonObject(absl::string_view text) {
  ASSIGN_OR_RETURN(json parsed, ParseJsonObject(WithStandIns(text)));
  ToNumbers(parsed);
  return parsed;
}

std::string FormatPythonJson(json value) {
  ToStandIns(value);
  const std::string text =
      value.dump(2, ' ', false, json::error_handler_t::replace);
  return absl::StrReplaceAll(text, {{"\"\x7f\"", "NaN"},
                                    {"\"\\u0001\"", "Infinity"},
                                    {"\"\\u0002\"", "-Infinity"}});
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
