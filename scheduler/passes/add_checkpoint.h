// Where the job saves checkpoints: the CHECKPOINT program, with a SNAPSHOT of
// each part of a unit, dealt in slices to the ranks that have the same of it,
// so that all disks write at once.
#ifndef TROUPE_SCHEDULER_PASSES_ADD_CHECKPOINT_H_
#define TROUPE_SCHEDULER_PASSES_ADD_CHECKPOINT_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void AddCheckpoint(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_ADD_CHECKPOINT_H_
