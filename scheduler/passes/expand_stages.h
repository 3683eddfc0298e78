// First pass: the TRAIN program's computation. Each stage of the compute order
// becomes its units: ascending for FORWARD, descending for the two backward
// kinds. Where backward-weight directly follows backward-input of the same
// stage and micro-batch, the two are interleaved unit by unit, so that what the
// one leaves for the other lives for a moment only. An embedding has no
// BACKWARD_INPUT.
#ifndef TROUPE_SCHEDULER_PASSES_EXPAND_STAGES_H_
#define TROUPE_SCHEDULER_PASSES_EXPAND_STAGES_H_

#include "scheduler/passes/draft.h"

namespace troupe {

void ExpandStages(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_EXPAND_STAGES_H_
