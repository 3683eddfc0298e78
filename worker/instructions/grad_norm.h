// GRAD_NORM: adds the sum of squares of a unit's gradients to SCALARS.
#ifndef TROUPE_WORKER_INSTRUCTIONS_GRAD_NORM_H_
#define TROUPE_WORKER_INSTRUCTIONS_GRAD_NORM_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunGradNorm(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_GRAD_NORM_H_
