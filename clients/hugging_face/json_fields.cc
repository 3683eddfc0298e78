#include "clients/hugging_face/json_fields.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"

namespace troupe {

using nlohmann::json;

JsonFields::JsonFields(const json& object, std::string where)
    : object_(&object), where_(std::move(where)) {}

bool JsonFields::Has(const char* key) const {
  const auto found = object_->find(key);
  return found != object_->end() && !found->is_null();
}

bool JsonFields::IsNull(const char* key) const {
  const auto found = object_->find(key);
  return found != object_->end() && found->is_null();
}

absl::StatusOr<int> JsonFields::Int(const char* key) const {
  if (!Has(key)) return Error(key, "is missing");
  const json& value = object_->at(key);
  const int max = std::numeric_limits<int>::max();
  if (value.is_number_integer() && value >= 0 && value <= max) {
    return value.get<int>();
  }
  return Error(key, absl::StrCat("is no integer from 0 to ", max));
}

absl::StatusOr<double> JsonFields::Number(const char* key) const {
  if (!Has(key)) return Error(key, "is missing");
  const json& value = object_->at(key);
  if (!value.is_number()) return Error(key, "is no number");
  if (std::isfinite(value.get<double>())) return value.get<double>();
  return Error(key, "is no finite number");
}

absl::StatusOr<std::string> JsonFields::Text(const char* key) const {
  if (!Has(key)) return Error(key, "is missing");
  const json& value = object_->at(key);
  if (value.is_string()) return value.get<std::string>();
  return Error(key, "is no text");
}

absl::StatusOr<std::vector<double>> JsonFields::Numbers(const char* key) const {
  if (!Has(key)) return Error(key, "is missing");
  const json& value = object_->at(key);
  std::vector<double> numbers;
  for (const json& item : value) {
    if (!value.is_array() || !item.is_number()) break;
    if (!std::isfinite(item.get<double>())) break;
    numbers.push_back(item.get<double>());
  }
  if (value.is_array() && numbers.size() == value.size()) return numbers;
  return Error(key, "is no list of finite numbers");
}

absl::StatusOr<std::vector<std::string>> JsonFields::Texts(
    const char* key) const {
  if (!Has(key)) return Error(key, "is missing");
  const json& value = object_->at(key);
  std::vector<std::string> texts;
  for (const json& item : value) {
    if (!value.is_array() || !item.is_string()) break;
    texts.push_back(item.get<std::string>());
  }
  if (value.is_array() && texts.size() == value.size()) return texts;
  return Error(key, "is no list of texts");
}

absl::StatusOr<std::vector<int>> JsonFields::Ints(const char* key) const {
  if (!Has(key)) return Error(key, "is missing");
  const json& value = object_->at(key);
  std::vector<int> numbers;
  for (const json& item : value) {
    if (!value.is_array() || !item.is_number_integer()) break;
    const auto number = item.get<int64_t>();
    if (number < INT_MIN || number > INT_MAX) break;
    numbers.push_back(static_cast<int>(number));
  }
  if (value.is_array() && numbers.size() == value.size()) return numbers;
  return Error(key, "is no list of whole numbers");
}

absl::StatusOr<JsonFields> JsonFields::Object(const char* key) const {
  if (!Has(key)) return Error(key, "is missing");
  const json& value = object_->at(key);
  if (!value.is_object()) return Error(key, "is no object");
  return JsonFields(value, absl::StrCat(where_, ": ", key));
}

absl::StatusOr<int> JsonFields::IntOr(const char* key, int fallback) const {
  if (!Has(key)) return fallback;
  return Int(key);
}

absl::StatusOr<double> JsonFields::NumberOr(const char* key,
                                            double fallback) const {
  if (!Has(key)) return fallback;
  return Number(key);
}

absl::StatusOr<bool> JsonFields::BoolOr(const char* key, bool fallback) const {
  if (!Has(key)) return fallback;
  const json& value = object_->at(key);
  if (!value.is_boolean()) return Error(key, "is neither true nor false");
  return value.get<bool>();
}

absl::Status JsonFields::Expect(
    const char* key, std::initializer_list<absl::string_view> values) const {
  if (!Has(key)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string found, Text(key));
  if (std::find(values.begin(), values.end(), found) != values.end()) {
    return absl::OkStatus();
  }
  return Error(key, absl::StrCat("'", found, "' is not supported, only ",
                                 absl::StrJoin(values, " and ")));
}

absl::Status JsonFields::ExpectBool(const char* key, bool value) const {
  ASSIGN_OR_RETURN(const bool found, BoolOr(key, value));
  if (found == value) return absl::OkStatus();
  return Error(key,
               absl::StrCat(found ? "true" : "false", " is not supported"));
}

std::string JsonFields::Place(const char* key) const {
  return absl::StrCat(where_, ": ", key);
}

absl::Status JsonFields::Error(const char* key, absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(Place(key), ": ", what));
}

}  // namespace troupe
