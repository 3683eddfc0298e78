// training.lora of a job that is resolved.
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_LORA_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_LORA_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Fills in what has a default. InvalidArgument "training.lora.rank: ..." for a
// number that is out of range, or a model that has no weights. Does nothing
// without training.lora. Which layers there are, CheckLora looks at
// (scheduler/layouts/lora.h).
absl::Status ResolveLora(JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_LORA_H_
