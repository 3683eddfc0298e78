// How large the slices of data replicas are: parallelism.zero_weights and
// zero_split.
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_ZERO_WEIGHTS_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_ZERO_WEIGHTS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

inline constexpr char kZeroSplitField[] = "parallelism.zero_split";
// zero_split, beside even and given (resolve_micro_batches.h). A job that says
// so is `given` or even once the planner has chosen (weights_by_memory.h).
inline constexpr char kSplitByMemory[] = "by_memory";

// Sets zero_split, and leaves weights out that are all the same. REQUIRES zero
// and zero_size resolved, and strategies. InvalidArgument, beginning with a
// field's path.
absl::Status ResolveZeroWeights(ParallelismSpec& parallelism);

// Whether the job, which need not be resolved, says how large slices are.
inline bool SaysSizesOfSlices(const ParallelismSpec& parallelism) {
  return parallelism.has_zero_split() || !parallelism.zero_weights().empty();
}

// Slices are even again: of a job with another number of replicas, or without
// slices.
void ClearZeroWeights(ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_ZERO_WEIGHTS_H_
