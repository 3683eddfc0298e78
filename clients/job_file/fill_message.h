// Writes a YAML tree into a protobuf message, field by field through
// reflection: a field of the .proto file is a field of the job file, with no
// table to forget. Whatever the message has no place for is refused, with the
// place in the file.
#ifndef TROUPE_CLIENTS_JOB_FILE_FILL_MESSAGE_H_
#define TROUPE_CLIENTS_JOB_FILE_FILL_MESSAGE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "clients/job_file/yaml_tree.h"
#include "google/protobuf/message.h"

namespace troupe {

// Path of a field ("optimizer.betas[1]") to where its value stands
// ("job.yaml:6:40").
using PositionMap = std::map<std::string, std::string>;

// Sets the fields of `message` that `root`, a map, names; the others stay as
// they are. A list replaces the one that was there; a single value is a list of
// one. An empty section is skipped; a section that has a field `mode` may be
// given as that alone, one that has a list `sources` as that list. `positions`
// gains an entry for each value and section. A field that is a map from texts
// to messages holds sections under names of the user's choice.
//
// InvalidArgument "job.yaml:14:9: parallelism.dta: no such field; did you mean
// data?", "...: training.steps: expected an integer, found the text "many"".
absl::Status FillMessage(const YamlNode& root, const YamlSource& source,
                         google::protobuf::Message& message,
                         PositionMap& positions);

// Sets the one field at `path` ("optimizer.lr"); null clears it. Errors as
// above.
absl::Status FillField(absl::string_view path, const YamlNode& value,
                       const YamlSource& source,
                       google::protobuf::Message& message,
                       PositionMap& positions);

// Every path of a value in messages of this type, in the order of the .proto
// file: "name", "model.architecture", ...
std::vector<std::string> FieldPaths(
    const google::protobuf::Descriptor& descriptor);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_JOB_FILE_FILL_MESSAGE_H_
