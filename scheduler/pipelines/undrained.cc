#include "scheduler/pipelines/undrained.h"

#include <algorithm>

namespace troupe {

ComputeOrder UndrainedOrder(const PipelineShape& shape) {
  ComputeOrder order(shape.ranks);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    for (int m = 0; m < shape.micro_batches; ++m) {
      const int entering = m + shape.ranks - 1 - rank;
      order[rank].push_back({.kind = ComputeStep::kForward,
                             .stage = rank,
                             .micro_batch = entering % shape.micro_batches,
                             .ahead = entering / shape.micro_batches});
      order[rank].push_back({ComputeStep::kBackwardInput, rank, m});
      order[rank].push_back({ComputeStep::kBackwardWeight, rank, m});
    }
  }
  return order;
}

int UndrainedAhead(const PipelineShape& shape, const MicroBatchOnRank& where) {
  const int delay = shape.ranks - 1 - where.rank;
  const int missing = std::max(0, delay - where.micro_batch);
  return (missing + shape.micro_batches - 1) / shape.micro_batches;
}

}  // namespace troupe
