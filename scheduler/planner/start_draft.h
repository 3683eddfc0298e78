// The first half of compiling a resolved job: the mesh, the groups, the units
// and where they rest, and the order of computation. The passes do the second
// half.
#ifndef TROUPE_SCHEDULER_PLANNER_START_DRAFT_H_
#define TROUPE_SCHEDULER_PLANNER_START_DRAFT_H_

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "scheduler/passes/draft.h"

namespace troupe {

// REQUIRES a resolved job. InvalidArgument, beginning with a field's path,
// where the model's sizes do not fit together.
absl::StatusOr<Draft> StartDraft(const JobSpec& resolved);

// Whether each micro-batch goes back through the last stage directly after it
// went forward.
bool LastStageTurnsAtOnce(const ComputeOrder& order);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_START_DRAFT_H_
