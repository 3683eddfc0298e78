#include "scheduler/pipelines/zero_bubble.h"

#include <algorithm>

namespace troupe {

ComputeOrder ZeroBubbleOrder(const PipelineShape& shape, int depth) {
  ComputeOrder order(shape.ranks);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    std::vector<ComputeStep>& steps = order[rank];
    const int warm_up = depth * (shape.ranks - 1 - rank);
    const int delay = depth * rank;
    int forward = 0;
    int weight = 0;
    for (int input = 0; input < shape.micro_batches; ++input) {
      while (forward < std::min(input + warm_up + 1, shape.micro_batches)) {
        steps.push_back({ComputeStep::kForward, rank, forward++});
      }
      steps.push_back({.kind = ComputeStep::kBackwardInput,
                       .stage = rank,
                       .micro_batch = input,
                       .split = true});
      if (input >= delay) {
        steps.push_back({ComputeStep::kBackwardWeight, rank, weight++});
      }
    }
    while (weight < shape.micro_batches) {
      steps.push_back({ComputeStep::kBackwardWeight, rank, weight++});
    }
  }
  return order;
}

}  // namespace troupe
