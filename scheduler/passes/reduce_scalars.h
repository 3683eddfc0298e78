// Adds REDUCE_SCALARS to the end of TRAIN and VALIDATE: loss, tokens, squared
// norm and stop flag, summed over all ranks. A job of one rank has nothing to
// sum. Where nothing of a step depends on these sums, and the schedule gains
// when ranks do not wait for one another at its end (Derived.report_lag), TRAIN
// begins with those of a step before, and the REPORT program sums the last
// ones.
//
// Ranks that meet must be in programs that run at the same time. In a deep
// pipeline whose steps are short, ranks may be several programs apart, in which
// case those that are ahead sum steps that lie further back: as many as a dry
// run finds them ahead of the last. Not so where ranks of one pipeline sum
// gradients of a step together (tied tables): that keeps them in one program.
#ifndef TROUPE_SCHEDULER_PASSES_REDUCE_SCALARS_H_
#define TROUPE_SCHEDULER_PASSES_REDUCE_SCALARS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void ReduceScalars(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_REDUCE_SCALARS_H_
