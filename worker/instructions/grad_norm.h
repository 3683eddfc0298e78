// GRAD_NORM: adds the sum of squares of the gradients of a unit's part to
// SCALARS, of the rank's slice where others have the same.
#ifndef TROUPE_WORKER_INSTRUCTIONS_GRAD_NORM_H_
#define TROUPE_WORKER_INSTRUCTIONS_GRAD_NORM_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunGradNorm(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_GRAD_NORM_H_
