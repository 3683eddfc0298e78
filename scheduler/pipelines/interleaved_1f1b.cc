#include "scheduler/pipelines/interleaved_1f1b.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "scheduler/pipelines/refusals.h"

namespace troupe {
namespace {

// Where a rank's `pass`-th pass in one direction goes: through its stages
// 0, 1, ... (`turn`), a group of `ranks` micro-batches through each.
struct ChunkPass {
  int turn = 0;
  int micro_batch = 0;
};

ChunkPass NthPass(const PipelineShape& shape, int pass) {
  const int group = pass / shape.stages();
  return {.turn = pass % shape.stages() / shape.ranks,
          .micro_batch = group * shape.ranks + pass % shape.ranks};
}

}  // namespace

absl::StatusOr<ComputeOrder> Interleaved1F1BOrder(const PipelineShape& shape) {
  if (shape.virtual_stages < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parallelism.virtual_stages: interleaved_1f1b has at least 2 stages a "
        "rank, not ",
        shape.virtual_stages, "; 1f1b has one"));
  }
  RETURN_IF_ERROR(
      CheckMicroBatchMultiple("interleaved_1f1b", shape.ranks, shape));
  const int passes = shape.micro_batches * shape.virtual_stages;
  const int last_turn = shape.virtual_stages - 1;
  ComputeOrder order(shape.ranks);
  for (int rank = 0; rank < shape.ranks; ++rank) {
    const int warm_up = last_turn * shape.ranks + 2 * (shape.ranks - 1 - rank);
    int forward = 0;
    for (int backward = 0; backward < passes; ++backward) {
      while (forward < std::min(backward + warm_up + 1, passes)) {
        const ChunkPass pass = NthPass(shape, forward++);
        order[rank].push_back({ComputeStep::kForward,
                               pass.turn * shape.ranks + rank,
                               pass.micro_batch});
      }
      const ChunkPass pass = NthPass(shape, backward);
      const int stage = (last_turn - pass.turn) * shape.ranks + rank;
      order[rank].push_back(
          {ComputeStep::kBackwardInput, stage, pass.micro_batch});
      order[rank].push_back(
          {ComputeStep::kBackwardWeight, stage, pass.micro_batch});
    }
  }
  return order;
}

}  // namespace troupe
