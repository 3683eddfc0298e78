// The part of resolving a job that is about parallelism. Used by resolve.cc
// only.
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_PARALLELISM_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_PARALLELISM_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Fills in the defaults of job.parallelism and checks each field. What a
// schedule thinks of the pipeline's shape is asked later, when the
// micro-batches are known. Where `memory` has mode `auto` and nothing is said
// of ZeRO, that stays open until it is chosen by the budgets (fit_memory.h).
absl::Status ResolveParallelism(const MemorySpec& memory,
                                ParallelismSpec& parallelism);

// The part of it that is about how ranks share units: batch, context, tensor.
absl::Status ResolveSharing(ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_PARALLELISM_H_
