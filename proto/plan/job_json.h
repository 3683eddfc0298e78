// A job as JSON: how a checkpoint keeps what it was trained as, for the jobs
// and commands that need the model again.
#ifndef TROUPE_PROTO_PLAN_JOB_JSON_H_
#define TROUPE_PROTO_PLAN_JOB_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace troupe {

// Fields under the names of job.proto.
std::string JobJson(const JobSpec& job);

// Fields that are not known, as a newer version may have written, are left out.
// DataLoss: not the JSON of a job, and why.
absl::StatusOr<JobSpec> ParseJobJson(const std::string& json);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_JOB_JSON_H_
