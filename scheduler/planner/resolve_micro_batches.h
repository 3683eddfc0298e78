// How the micro-batches of a step are split over data replicas:
// parallelism.micro_batches and micro_batch_split.
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_MICRO_BATCHES_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_MICRO_BATCHES_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// The split's values. A job that says `by_speed` is `given` once the planner
// has chosen (split_by_speed.h).
inline constexpr char kSplitEven[] = "even";
inline constexpr char kSplitBySpeed[] = "by_speed";
inline constexpr char kSplitGiven[] = "given";

// Sets micro_batch_split, and checks that the global batch can be split so.
// REQUIRES training and all other parallelism resolved. InvalidArgument,
// beginning with a field's path.
absl::Status ResolveMicroBatches(JobSpec& job);

// Micro-batches of a step on all replicas together.
int MicroBatchesOfStep(const JobSpec& job);

// The most that a replica has in a step; `by_speed`: that it may have.
int MicroBatchesMost(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_MICRO_BATCHES_H_
