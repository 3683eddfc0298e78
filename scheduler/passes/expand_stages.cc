#include "scheduler/passes/expand_stages.h"

#include "scheduler/passes/expand_order.h"

namespace troupe {

void ExpandStages(Draft& draft) {
  ExpandOrder(draft.compute_order, draft.compute_order, Program::TRAIN, draft);
}

}  // namespace troupe
