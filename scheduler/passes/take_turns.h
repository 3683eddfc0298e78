// Where each step is one replica's (servers.mode: async, bounded), adds what
// replicas and servers do for it: a replica claims the step before all else,
// and delivers its gradients behind all else; a server admits what comes before
// it steps. CLAIM stands on the lane of the data, so that nothing is loaded for
// a step that is another's.
#ifndef TROUPE_SCHEDULER_PASSES_TAKE_TURNS_H_
#define TROUPE_SCHEDULER_PASSES_TAKE_TURNS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void TakeTurns(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_TAKE_TURNS_H_
