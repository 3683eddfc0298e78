// Where the pipeline never drains: the FILL program, which runs once, before
// the first step's TRAIN, and has done what TRAIN expects of the programs
// before it. A rank whose TRAIN runs a micro-batch forward for `a` steps ahead
// does so here for each of the a first steps, in the order of the stream.
#ifndef TROUPE_SCHEDULER_PASSES_ADD_FILL_H_
#define TROUPE_SCHEDULER_PASSES_ADD_FILL_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void AddFill(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_ADD_FILL_H_
