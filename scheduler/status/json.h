// A protobuf message as JSON for browsers and scripts: fields under their names
// in the .proto file, enums by name, 64-bit integers as numbers (protobuf's own
// JSON makes strings of them), what is not finite as null, bytes in base64.
// Numbers, texts and lists are always there; messages and optional fields only
// where they are set.
#ifndef TROUPE_SCHEDULER_STATUS_JSON_H_
#define TROUPE_SCHEDULER_STATUS_JSON_H_

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace troupe {

std::string ToJson(const google::protobuf::Message& message);

// null where it is not finite.
std::string JsonNumber(double value);

// In quotes, escaped; what is no UTF-8 becomes U+FFFD.
std::string JsonString(absl::string_view text);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STATUS_JSON_H_
