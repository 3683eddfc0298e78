// A protobuf message as JSON for programs: fields by their names in the .proto
// file, every number a JSON number (protobuf's own form writes 64-bit ones as
// strings), enums by name, a number that is not finite as null.
#ifndef TROUPE_CLIENTS_CLI_VIEW_MESSAGE_JSON_H_
#define TROUPE_CLIENTS_CLI_VIEW_MESSAGE_JSON_H_

#include <string>

#include "google/protobuf/message.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/status.pb.h"

namespace troupe {

// Every field is there: an `optional` one that is not set is null, a message
// that is not set is left out.
nlohmann::ordered_json MessageJson(const google::protobuf::Message& message);

// `troupe describe --json`: the status's fields, then `plan`, `steps`,
// `events`. Indented text, ends with a newline.
std::string DescriptionJson(const JobDescription& job);

// Any other message in the same form.
std::string MessageJsonText(const google::protobuf::Message& message);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_MESSAGE_JSON_H_
