#include "scheduler/passes/add_validation.h"

#include <algorithm>

#include "scheduler/passes/expand_order.h"

namespace troupe {

void AddValidation(Draft& draft) {
  if (draft.plan.job().training().validate_every() == 0) return;
  const int ranks = static_cast<int>(draft.compute_order.size());
  const int micro_batches = draft.plan.derived().validation_micro_batches();
  ComputeOrder order(ranks);
  for (int first = 0; first < micro_batches; first += ranks) {
    const int end = std::min(micro_batches, first + ranks);
    for (int s = 0; s < draft.plan.stages_size(); ++s) {
      // Of a stage's replicas, one is enough.
      const int rank = draft.plan.stages(s).pipeline_ranks(0);
      for (int m = first; m < end; ++m) {
        order[rank].push_back({.stage = s, .micro_batch = m});
      }
    }
  }
  ExpandOrder(order, order, Program::VALIDATE, draft);
}

}  // namespace troupe
