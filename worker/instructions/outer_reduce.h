// OUTER_REDUCE: what all islands have changed of a unit, between the ranks that
// hold the same of it. Uncompressed, the sum; compressed, the mean: each island
// gets one piece of all, adds them up in f32 in the order of the islands, and
// hands the mean to all (proto/plan/outer_change.h).
#ifndef TROUPE_WORKER_INSTRUCTIONS_OUTER_REDUCE_H_
#define TROUPE_WORKER_INSTRUCTIONS_OUTER_REDUCE_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunOuterReduce(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_OUTER_REDUCE_H_
