// Where the job saves checkpoints: the CHECKPOINT program, with a SNAPSHOT of
// each unit on exactly one rank of its replica group, spread over the ranks by
// bytes, so that all disks write at once.
#ifndef TROUPE_SCHEDULER_PASSES_ADD_CHECKPOINT_H_
#define TROUPE_SCHEDULER_PASSES_ADD_CHECKPOINT_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void AddCheckpoint(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_ADD_CHECKPOINT_H_
