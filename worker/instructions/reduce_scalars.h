// REDUCE_SCALARS: sums Plan.sums over a group, so that all ranks know them. A
// rank that was asked to stop sets its flag here. Where a program sums a step before its own (`ahead` below 0) that
// is summed already, or was never run, there is nothing to do, on any rank.
#ifndef TROUPE_WORKER_INSTRUCTIONS_REDUCE_SCALARS_H_
#define TROUPE_WORKER_INSTRUCTIONS_REDUCE_SCALARS_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunReduceScalars(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_REDUCE_SCALARS_H_
