// Which fields of a message are set, by name, so that a program of another
// build can tell which of them it does not know: protobuf would drop those
// without a word, and a job would be trained without what its author asked for.
#ifndef TROUPE_PROTO_PLAN_SET_FIELDS_H_
#define TROUPE_PROTO_PLAN_SET_FIELDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace troupe {

// The paths of all fields that are set, sorted, each once: "training",
// "training.epochs"; of the elements of a list without their numbers.
std::vector<std::string> SetFields(const google::protobuf::Message& message);

// InvalidArgument, beginning with the path, where one of `paths`, which are
// SetFields of the sender's build, is of no field that this build knows, or the
// message has a field, at any depth, that it does not know.
absl::Status CheckFieldsKnown(const google::protobuf::Message& message,
                              const std::vector<std::string>& paths);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SET_FIELDS_H_
