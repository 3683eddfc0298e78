// Adds to TRAIN what islands exchange (docs/islands.md): of each unit that a
// rank steps, behind the steps, in the steps in which the unit's fragment is
// exchanged, by how much the island has changed the unit's weights, the sum
// over islands, and the outer optimizer's step. The sum of one unit is on its
// way while the change of the next is taken. With islands.overlap changes are
// taken before the step, and are on their way during all of it.
#ifndef TROUPE_SCHEDULER_PASSES_EXCHANGE_ISLANDS_H_
#define TROUPE_SCHEDULER_PASSES_EXCHANGE_ISLANDS_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void ExchangeIslands(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_EXCHANGE_ISLANDS_H_
