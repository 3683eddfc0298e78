#include "scheduler/passes/add_fill.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "scheduler/passes/expand_order.h"

namespace troupe {

void AddFill(Draft& draft) {
  ComputeOrder fill(draft.compute_order.size());
  bool ahead = false;
  for (size_t rank = 0; rank < fill.size(); ++rank) {
    for (const ComputeStep& step : draft.compute_order[rank]) {
      for (int a = 1; a <= step.ahead; ++a) {
        fill[rank].push_back({.kind = step.kind,
                              .stage = step.stage,
                              .micro_batch = step.micro_batch,
                              .ahead = a});
      }
    }
    std::stable_sort(fill[rank].begin(), fill[rank].end(),
                     [](const ComputeStep& x, const ComputeStep& y) {
                       return std::tie(x.ahead, x.micro_batch) <
                              std::tie(y.ahead, y.micro_batch);
                     });
    ahead |= !fill[rank].empty();
  }
  if (!ahead) return;
  ExpandOrder(fill, draft.compute_order, Program::FILL,
              /*replica_kind=*/0, draft);
}

}  // namespace troupe
