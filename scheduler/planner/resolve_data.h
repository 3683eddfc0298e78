// What a job trains and validates on (docs/job.md, `data`).
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_DATA_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_DATA_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Sets defaults and checks; of a job that only evaluates, which has no files to
// train on. InvalidArgument begins with the field.
absl::Status ResolveData(bool evaluates, DataSpec& data);

// Of a synthetic model, which reads nothing.
absl::Status ResolveNoData(DataSpec& data);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_DATA_H_
