// A job as its user wrote it leaves much unsaid. Resolving it fills in every
// default (proto/job.proto names them) and refuses what cannot be run, so that
// everything after this reads fields without asking whether they make sense.
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_H_

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace troupe {

// Whether a job is refused whose plan would be too long. Of one whose
// parallelism is left open nobody knows yet.
enum class PlanLength { kChecked, kUnknown };

// The job with every field set, but for checkpoint.background where memory
// decides; of memory.recompute auto stays, and with memory.mode auto all that
// it may choose. Resolving a resolved job changes nothing.
//
// InvalidArgument begins with the path of the field and has the numbers and the
// way out:
//   parallelism.data: 3 does not divide training.global_batch_size 32 /
//   training.micro_batch_size 4 = 8 micro-batches; use 1, 2, 4 or 8
absl::StatusOr<JobSpec> ResolveJob(const JobSpec& job,
                                   PlanLength length = PlanLength::kChecked);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_H_
