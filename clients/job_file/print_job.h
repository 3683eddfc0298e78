// A JobSpec as a job file: what the planner resolved, in the form that people
// write. LoadJobFile reads it back to the same message.
#ifndef TROUPE_CLIENTS_JOB_FILE_PRINT_JOB_H_
#define TROUPE_CLIENTS_JOB_FILE_PRINT_JOB_H_

#include <string>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"

namespace troupe {

// One field a line, sections indented by two spaces, in the order of job.proto;
// fields that are not set are left out. Ends with a newline.
std::string JobYaml(const JobSpec& job);

// The shortest decimal that reads back to the same double: "0.0003", "1e-08".
std::string ShortestDouble(double value);

// `text` as a YAML scalar: plain where that is safe, else in double quotes.
std::string YamlText(absl::string_view text);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_JOB_FILE_PRINT_JOB_H_
