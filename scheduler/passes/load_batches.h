// Adds LOAD_BATCH to every program that computes, one micro-batch ahead: the
// next one is read while this one is computed with, and two are in memory at
// most.
#ifndef TROUPE_SCHEDULER_PASSES_LOAD_BATCHES_H_
#define TROUPE_SCHEDULER_PASSES_LOAD_BATCHES_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void LoadBatches(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_LOAD_BATCHES_H_
