#include "scheduler/pipelines/zb_v.h"

#include "proto/base/status.h"
#include "scheduler/pipelines/refusals.h"

namespace troupe {
namespace {

// The passes of one stage, micro-batch after micro-batch. A pass that would be
// one too many is left out.
class Stage {
 public:
  Stage(int stage, int micro_batches, std::vector<ComputeStep>& steps)
      : stage_(stage), micro_batches_(micro_batches), steps_(steps) {}

  int forwards() const { return forwards_; }

  void Forward() {
    if (forwards_ == micro_batches_) return;
    steps_.push_back({ComputeStep::kForward, stage_, forwards_++});
  }
  void Input() {
    if (inputs_ == forwards_) return;
    steps_.push_back({.kind = ComputeStep::kBackwardInput,
                      .stage = stage_,
                      .micro_batch = inputs_++,
                      .split = true});
  }
  void Weight() {
    if (weights_ == inputs_) return;
    steps_.push_back({ComputeStep::kBackwardWeight, stage_, weights_++});
  }
  void AllWeights() {
    while (weights_ < inputs_) Weight();
  }

 private:
  const int stage_;
  const int micro_batches_;
  std::vector<ComputeStep>& steps_;
  int forwards_ = 0;
  int inputs_ = 0;
  int weights_ = 0;
};

std::vector<ComputeStep> OrderOfRank(const PipelineShape& shape, int rank) {
  std::vector<ComputeStep> steps;
  Stage down(rank, shape.micro_batches, steps);
  Stage up(shape.stages() - 1 - rank, shape.micro_batches, steps);
  const int below = shape.ranks - rank;  // ranks from this one down
  for (int i = 0; i < 2 * below - 1; ++i) down.Forward();
  for (int i = 0; i < rank; ++i) {
    up.Forward();
    down.Forward();
  }
  for (int i = 0; i < below; ++i) {
    up.Forward();
    up.Input();
    up.Weight();
  }
  while (up.forwards() < shape.micro_batches) {
    for (Stage* const stage : {&down, &up}) {
      stage->Forward();
      stage->Input();
      stage->Weight();
    }
  }
  // Drain: first what the ranks above wait for.
  for (int i = 0; i < rank; ++i) {
    down.Input();
    up.Input();
  }
  for (int i = 0; i < below; ++i) {
    down.Input();
    down.Weight();
  }
  up.AllWeights();
  down.AllWeights();
  return steps;
}

}  // namespace

absl::StatusOr<ComputeOrder> ZbVOrder(const PipelineShape& shape) {
  RETURN_IF_ERROR(CheckVirtualStages("zb_v", 2, shape));
  ComputeOrder order;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    order.push_back(OrderOfRank(shape, rank));
  }
  return order;
}

}  // namespace troupe
