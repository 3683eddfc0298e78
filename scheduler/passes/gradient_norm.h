// Adds GRAD_NORM: of each part of a unit, dealt in slices to the ranks that
// have the same sum of its gradients. So the sum over all ranks counts every
// gradient once. They follow all of backward, in the order in which reductions
// end, on the host's cores where gradients rest below the device. A job without
// an optimizer has none.
#ifndef TROUPE_SCHEDULER_PASSES_GRADIENT_NORM_H_
#define TROUPE_SCHEDULER_PASSES_GRADIENT_NORM_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void GradientNorm(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_GRADIENT_NORM_H_
