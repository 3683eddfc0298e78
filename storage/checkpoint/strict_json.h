// JSON as files carry it, read without trust: every field is asked for by name
// and type, and an error says where it is missing or what stands there instead.
// The one place in storage where the JSON library's exceptions are caught.
#ifndef TROUPE_STORAGE_CHECKPOINT_STRICT_JSON_H_
#define TROUPE_STORAGE_CHECKPOINT_STRICT_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace troupe {

// An object, in which no key comes twice at any level. InvalidArgument with the
// byte at which `text` stops being one.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text);

// The same of what Python's json module writes, config.json among others: NaN,
// Infinity and -Infinity are numbers there, and here. What has been parsed so
// is written so, in lines indented by two spaces.
absl::StatusOr<nlohmann::json> ParsePythonJsonObject(absl::string_view text);
std::string FormatPythonJson(nlohmann::json json);

// The same of a long text: each object in an array that is a field of the
// outermost object goes to `take`, with the field's key, as soon as it is
// parsed. Where that says that it took it, it is not kept. An error of `take`
// is that of the whole; it is not called again.
using TakeElement = absl::FunctionRef<absl::StatusOr<bool>(
    absl::string_view key, const nlohmann::json& element)>;
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text,
                                               TakeElement take);

// Compact text on one line; bytes that are not UTF-8 become U+FFFD.
std::string FormatJson(const nlohmann::json& json);

// Fields of an object; InvalidArgument, naming the key, where one is missing or
// of another type.
absl::StatusOr<std::string> StringField(const nlohmann::json& object,
                                        const char* key);
absl::StatusOr<uint64_t> UintField(const nlohmann::json& object,
                                   const char* key);
absl::StatusOr<double> NumberField(const nlohmann::json& object,
                                   const char* key);
absl::StatusOr<std::vector<int64_t>> IntsField(const nlohmann::json& object,
                                               const char* key);
// False where it is missing.
absl::StatusOr<bool> FlagField(const nlohmann::json& object, const char* key);
// Borrowed from `object`.
absl::StatusOr<const nlohmann::json*> ArrayField(const nlohmann::json& object,
                                                 const char* key);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_STRICT_JSON_H_
