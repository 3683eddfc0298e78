#include "scheduler/passes/add_validation.h"

#include <algorithm>
#include <vector>

#include "proto/plan/replica_share.h"
#include "scheduler/passes/expand_order.h"

namespace troupe {
namespace {

ComputeOrder ValidationOrder(const Draft& draft, int micro_batches) {
  const int ranks = static_cast<int>(draft.compute_order.size());
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
  return order;
}

}  // namespace

void AddValidation(Draft& draft) {
  if (draft.plan.job().training().validate_every() == 0) return;
  int replica_kind = 0;
  for (const std::vector<int>& places : ReplicaKinds(draft.plan)) {
    const int replica = places.empty() ? 0 : places.front();
    const ComputeOrder order = ValidationOrder(
        draft, ShareOf(draft.plan.derived(), Program::VALIDATE, replica).count);
    ExpandOrder(order, order, Program::VALIDATE, replica_kind++, draft);
  }
}

}  // namespace troupe
