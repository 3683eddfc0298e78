#include "scheduler/passes/expand_stages.h"

#include "scheduler/passes/expand_order.h"

namespace troupe {

void ExpandStages(Draft& draft) {
  int replica_kind = 0;
  ExpandOrder(draft.compute_order, draft.compute_order, Program::TRAIN,
              replica_kind, draft);
  for (const ComputeOrder& order : draft.shorter_orders) {
    ExpandOrder(order, order, Program::TRAIN, ++replica_kind, draft);
  }
}

}  // namespace troupe
