// One scalar of a YAML tree as the number, truth value or text that a protobuf
// field holds. Strict: 3.5 is no integer, "200" in quotes is no number, yes is
// no truth value, nan and inf are no numbers.
#ifndef TROUPE_CLIENTS_JOB_FILE_SCALAR_VALUE_H_
#define TROUPE_CLIENTS_JOB_FILE_SCALAR_VALUE_H_

#include "absl/status/status.h"
#include "clients/job_file/yaml_tree.h"
#include "google/protobuf/message.h"

namespace troupe {

// Sets the field, or appends where it is repeated. InvalidArgument "expected an
// integer, found the number 3.5", without path or place. CHECKs that the field
// is an integer, a double, a bool or a string.
absl::Status SetScalar(const YamlNode& node,
                       const google::protobuf::FieldDescriptor& field,
                       google::protobuf::Message& message);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_JOB_FILE_SCALAR_VALUE_H_
