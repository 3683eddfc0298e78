// Gives every buffer a slot. Resident buffers (parameters, gradients, ...) and
// carried ones own one each, with as many copies as are in use at once, shared
// by the rank's programs and listed by kind, then by unit, so that neighbouring
// units are neighbours in memory. The others share: largest first, each takes
// the smallest slot that is free from its first writer to its last user, in
// program order (greedy by size, Pisarchyk and Lee, 2020, arXiv 2001.03288);
// that of a carried buffer is free in TRAIN until the next step's is written.
// What a transfer moves is in use while the step of computation next to it runs
// too, so that the two overlap.
#ifndef TROUPE_SCHEDULER_PASSES_ASSIGN_SLOTS_H_
#define TROUPE_SCHEDULER_PASSES_ASSIGN_SLOTS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void AssignSlots(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_ASSIGN_SLOTS_H_
