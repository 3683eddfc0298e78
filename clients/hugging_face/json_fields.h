// The fields of one JSON object of somebody else's file: asked for by key and
// type, null being the same as absent but for IsNull, and every error naming
// file and key.
#ifndef TROUPE_CLIENTS_HUGGING_FACE_JSON_FIELDS_H_
#define TROUPE_CLIENTS_HUGGING_FACE_JSON_FIELDS_H_

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

class JsonFields {
 public:
  // Borrows `object`, which is one.
  JsonFields(const nlohmann::json& object, std::string where);

  bool Has(const char* key) const;
  // It is there, and null.
  bool IsNull(const char* key) const;

  // InvalidArgument where the field is missing or of another type.
  absl::StatusOr<int> Int(const char* key) const;
  absl::StatusOr<double> Number(const char* key) const;  // finite
  absl::StatusOr<std::string> Text(const char* key) const;
  absl::StatusOr<std::vector<double>> Numbers(const char* key) const;
  absl::StatusOr<std::vector<std::string>> Texts(const char* key) const;
  absl::StatusOr<std::vector<int>> Ints(const char* key) const;
  absl::StatusOr<JsonFields> Object(const char* key) const;

  // `fallback` where it is absent.
  absl::StatusOr<int> IntOr(const char* key, int fallback) const;
  absl::StatusOr<double> NumberOr(const char* key, double fallback) const;
  absl::StatusOr<bool> BoolOr(const char* key, bool fallback) const;

  // InvalidArgument where the field is there and is none of these.
  absl::Status Expect(const char* key,
                      std::initializer_list<absl::string_view> values) const;
  absl::Status ExpectBool(const char* key, bool value) const;

  // "<where>: <key>".
  std::string Place(const char* key) const;
  // "<where>: <key>: <what>".
  absl::Status Error(const char* key, absl::string_view what) const;

 private:
  const nlohmann::json* object_;
  std::string where_;
};

}  // namespace troupe

#endif  // TROUPE_CLIENTS_HUGGING_FACE_JSON_FIELDS_H_
