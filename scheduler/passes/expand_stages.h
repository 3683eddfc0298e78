// First pass: the TRAIN program's computation and transfers, from the pipeline
// schedule's compute order.
#ifndef TROUPE_SCHEDULER_PASSES_EXPAND_STAGES_H_
#define TROUPE_SCHEDULER_PASSES_EXPAND_STAGES_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void ExpandStages(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_EXPAND_STAGES_H_
