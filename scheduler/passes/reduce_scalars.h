// Adds REDUCE_SCALARS to the end of TRAIN and VALIDATE: loss, tokens, squared
// norm and stop flag, summed over all ranks. A job of one rank has nothing to
// sum. Where nothing of a step depends on these sums, and the schedule gains
// when ranks do not wait for one another at its end (Derived.report_lag), TRAIN
// begins with those of a step before, and the REPORT program sums the last
// ones.
#ifndef TROUPE_SCHEDULER_PASSES_REDUCE_SCALARS_H_
#define TROUPE_SCHEDULER_PASSES_REDUCE_SCALARS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void ReduceScalars(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_REDUCE_SCALARS_H_
