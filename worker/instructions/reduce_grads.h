// REDUCE_GRADS: sums the gradients of units [unit, unit + unit_count), or of a
// part of one, over a group, in one collective: what rests here of them. Their
// buffers are one range (rank_memory.h).
#ifndef TROUPE_WORKER_INSTRUCTIONS_REDUCE_GRADS_H_
#define TROUPE_WORKER_INSTRUCTIONS_REDUCE_GRADS_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunReduceGrads(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_REDUCE_GRADS_H_
