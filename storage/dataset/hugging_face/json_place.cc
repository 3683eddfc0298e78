#include "storage/dataset/hugging_face/json_place.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/utf8.h"

namespace troupe {
namespace {

using nlohmann::json;

const json kNull;

// Of what a file says, so much as fits a message.
std::string Quoted(absl::string_view text) {
  constexpr size_t kBytesMax = 60;
  if (text.size() <= kBytesMax) return absl::StrCat("\"", text, "\"");
  size_t bytes = kBytesMax;
  while (bytes > 0 && (text[bytes] & 0xC0) == 0x80) --bytes;
  return absl::StrCat("\"", text.substr(0, bytes), "...\"");
}

}  // namespace

absl::Status JsonPlace::Error(absl::string_view message) const {
  return absl::InvalidArgumentError(
      absl::StrCat(place_.empty() ? "the file" : place_, ": ", message));
}

std::string JsonPlace::PlaceOf(absl::string_view key) const {
  return place_.empty() ? std::string(key) : absl::StrCat(place_, ".", key);
}

absl::StatusOr<JsonPlace> JsonPlace::Field(const char* key) const {
  if (!value_->is_object()) {
    return Error(
        absl::StrCat("must be an object, found ", value_->type_name()));
  }
  const auto found = value_->find(key);
  return JsonPlace(found == value_->end() ? kNull : *found, PlaceOf(key));
}

absl::Status JsonPlace::CheckKeys(
    std::initializer_list<absl::string_view> known) const {
  if (!value_->is_object()) {
    return Error(
        absl::StrCat("must be an object, found ", value_->type_name()));
  }
  for (const auto& item : value_->items()) {
    if (std::count(known.begin(), known.end(), item.key()) == 0) {
      return Error(absl::StrCat("key ", Quoted(item.key()), " is not known"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> JsonPlace::Type() const { return Text("type"); }

absl::Status JsonPlace::UnknownType(absl::string_view type) const {
  return Error(absl::StrCat("type ", Quoted(type), " is not known"));
}

absl::StatusOr<std::vector<JsonPlace>> JsonPlace::Elements() const {
  if (!value_->is_array()) {
    return Error(absl::StrCat("must be a list, found ", value_->type_name()));
  }
  std::vector<JsonPlace> elements;
  elements.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i) {
    elements.emplace_back((*value_)[i], absl::StrCat(place_, "[", i, "]"));
  }
  return elements;
}

absl::StatusOr<std::string> JsonPlace::Text(const char* key) const {
  ASSIGN_OR_RETURN(const JsonPlace field, Field(key));
  if (!field.value().is_string()) {
    return field.Error(
        absl::StrCat("must be a text, found ", field.value().type_name()));
  }
  return field.value().get<std::string>();
}

absl::StatusOr<std::string> JsonPlace::TextOr(const char* key,
                                              absl::string_view missing) const {
  ASSIGN_OR_RETURN(const JsonPlace field, Field(key));
  if (field.IsNull()) return std::string(missing);
  return Text(key);
}

absl::StatusOr<bool> JsonPlace::Flag(const char* key) const {
  ASSIGN_OR_RETURN(const JsonPlace field, Field(key));
  if (!field.value().is_boolean()) {
    return field.Error(absl::StrCat("must be true or false, found ",
                                    field.value().type_name()));
  }
  return field.value().get<bool>();
}

absl::StatusOr<bool> JsonPlace::FlagOr(const char* key, bool missing) const {
  ASSIGN_OR_RETURN(const JsonPlace field, Field(key));
  if (field.IsNull()) return missing;
  return Flag(key);
}

absl::StatusOr<int64_t> JsonPlace::Integer(const char* key, int64_t min,
                                           int64_t max) const {
  ASSIGN_OR_RETURN(const JsonPlace field, Field(key));
  const json& value = field.value();
  const bool fits =
      value.is_number_unsigned()
          ? value.get<uint64_t>() <= static_cast<uint64_t>(max)
          : value.is_number_integer() && value.get<int64_t>() <= max;
  if (!fits || value.get<int64_t>() < min) {
    return field.Error(
        absl::StrCat("must be an integer of ", min, " to ", max));
  }
  return value.get<int64_t>();
}

absl::StatusOr<uint32_t> JsonPlace::Character(const char* key) const {
  ASSIGN_OR_RETURN(const std::string text, Text(key));
  if (text.empty() || CharacterBytes(text) != text.size()) {
    return Error(absl::StrCat("\"", key, "\" must be one character"));
  }
  return CharacterAt(text, 0).code;
}

}  // namespace troupe
