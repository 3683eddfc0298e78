// Adds REDUCE_SCALARS to the end of TRAIN and VALIDATE: loss, tokens, squared
// norm and stop flag, summed over all ranks. A job of one rank has nothing to
// sum.
#ifndef TROUPE_SCHEDULER_PASSES_REDUCE_SCALARS_H_
#define TROUPE_SCHEDULER_PASSES_REDUCE_SCALARS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void ReduceScalars(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_REDUCE_SCALARS_H_
