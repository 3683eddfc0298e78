// A value of a tokenizer.json and where it stands, so that each error says so:
//
//   normalizer.normalizers[1]: type "Foo" is not known
//
// Each object is read strictly: a key that nobody knows is refused.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_JSON_PLACE_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_JSON_PLACE_H_

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// Borrows the value. All errors are InvalidArgument with the place.
class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& value, std::string place)
      : value_(&value), place_(std::move(place)) {}

  const nlohmann::json& value() const { return *value_; }
  const std::string& place() const { return place_; }
  bool IsNull() const { return value_->is_null(); }

  absl::Status Error(absl::string_view message) const;

  // Of an object. Where the key is missing: a null.
  absl::StatusOr<JsonPlace> Field(const char* key) const;
  // Refuses every key but these.
  absl::Status CheckKeys(std::initializer_list<absl::string_view> known) const;
  // The field "type".
  absl::StatusOr<std::string> Type() const;
  absl::Status UnknownType(absl::string_view type) const;

  // The elements of an array.
  absl::StatusOr<std::vector<JsonPlace>> Elements() const;

  // Fields of an object.
  absl::StatusOr<std::string> Text(const char* key) const;
  absl::StatusOr<std::string> TextOr(const char* key,
                                     absl::string_view missing) const;
  absl::StatusOr<bool> Flag(const char* key) const;
  // `missing` where the key is missing or null.
  absl::StatusOr<bool> FlagOr(const char* key, bool missing) const;
  absl::StatusOr<int64_t> Integer(const char* key, int64_t min,
                                  int64_t max) const;
  // A text of one character; its code point.
  absl::StatusOr<uint32_t> Character(const char* key) const;

 private:
  std::string PlaceOf(absl::string_view key) const;

  const nlohmann::json* value_;
  std::string place_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_JSON_PLACE_H_
