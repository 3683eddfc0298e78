#include "scheduler/search/order_times.h"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

constexpr double kNotYet = -1;

class Run {
 public:
  Run(const ComputeOrder& order, const std::vector<StageSeconds>& stages,
      double handover)
      : order_(order),
        stages_(stages),
        handover_(handover),
        next_(order.size(), 0),
        now_(order.size(), 0) {
    for (const std::vector<ComputeStep>& steps : order) {
      for (const ComputeStep& step : steps) {
        micro_batches_ = std::max(micro_batches_, step.micro_batch + 1);
      }
    }
    const size_t cells = stages.size() * micro_batches_;
    for (auto* const ends : {&forward_, &backward_}) {
      ends->assign(cells, {.at = kNotYet});
    }
    times_.begins.assign(order.size(), -1);
  }

  OrderTimes ToTheEnd() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t rank = 0; rank < order_.size(); ++rank) {
        while (Advance(rank)) moved = true;
      }
    }
    for (size_t rank = 0; rank < order_.size(); ++rank) {
      if (next_[rank] < order_[rank].size()) {
        now_[rank] = std::numeric_limits<double>::infinity();
      }
    }
    times_.ends = std::move(now_);
    return std::move(times_);
  }

 private:
  // When a pass ended, and where.
  struct End {
    double at = kNotYet;
    size_t rank = 0;
  };

  size_t Cell(int stage, int micro_batch) const {
    return static_cast<size_t>(stage) * micro_batches_ + micro_batch;
  }

  // Not before this; kNotYet: it has to wait for a pass that has not run.
  double ReadyAt(size_t rank, const ComputeStep& step) const {
    const auto after = [&](const End& end) {
      if (end.at == kNotYet) return kNotYet;
      return end.at + (end.rank == rank ? 0 : handover_);
    };
    if (step.kind == ComputeStep::kForward) {
      return step.stage == 0
                 ? 0
                 : after(forward_[Cell(step.stage - 1, step.micro_batch)]);
    }
    const double own = after(forward_[Cell(step.stage, step.micro_batch)]);
    const bool last = step.stage + 1 == static_cast<int>(stages_.size());
    if (step.kind == ComputeStep::kBackwardWeight || last || own == kNotYet) {
      return own;
    }
    const double behind =
        after(backward_[Cell(step.stage + 1, step.micro_batch)]);
    return behind == kNotYet ? kNotYet : std::max(own, behind);
  }

  bool Advance(size_t rank) {
    const std::vector<ComputeStep>& steps = order_[rank];
    const size_t at = next_[rank];
    if (at == steps.size()) return false;
    const ComputeStep& step = steps[at];
    const double ready = ReadyAt(rank, step);
    if (ready == kNotYet) return false;
    const StageSeconds& seconds = stages_[step.stage];
    const double start = std::max(now_[rank], ready);
    if (times_.begins[rank] < 0) times_.begins[rank] = start;
    const bool one = at + 1 < steps.size() && OneBackward(step, steps[at + 1]);
    const double takes = step.kind == ComputeStep::kForward ? seconds.forward
                         : one                              ? seconds.backward
                         : step.kind == ComputeStep::kBackwardInput
                             ? seconds.input
                             : seconds.weight;
    now_[rank] = start + takes;
    next_[rank] += one ? 2 : 1;
    const size_t cell = Cell(step.stage, step.micro_batch);
    if (step.kind == ComputeStep::kForward) {
      forward_[cell] = {.at = now_[rank], .rank = rank};
    } else if (step.kind == ComputeStep::kBackwardInput) {
      backward_[cell] = {.at = now_[rank], .rank = rank};
    }
    return true;
  }

  const ComputeOrder& order_;
  const std::vector<StageSeconds>& stages_;
  const double handover_;
  int micro_batches_ = 0;
  std::vector<size_t> next_;  // by rank
  std::vector<double> now_;
  std::vector<End> forward_;  // by stage and micro-batch
  std::vector<End> backward_;
  OrderTimes times_;
};

}  // namespace

OrderTimes TimeOrder(const ComputeOrder& order,
                     const std::vector<StageSeconds>& stages, double handover) {
  return Run(order, stages, handover).ToTheEnd();
}

std::vector<MostBytes> MostKept(const ComputeOrder& order,
                                const std::vector<KeptBytes>& of_stage) {
  std::vector<MostBytes> most;
  for (const std::vector<ComputeStep>& steps : order) {
    int64_t now = 0;
    MostBytes& of_rank = most.emplace_back();
    for (size_t i = 0; i < steps.size(); ++i) {
      const ComputeStep& step = steps[i];
      const KeptBytes& kept = of_stage[step.stage];
      switch (step.kind) {
        case ComputeStep::kForward:
          now += kept.for_input + kept.for_weight;
          break;
        case ComputeStep::kBackwardInput:
          of_rank.going_back = std::max(of_rank.going_back, now);
          now += kept.deferred - kept.for_input;
          if (i + 1 < steps.size() && OneBackward(step, steps[i + 1])) {
            now -= kept.deferred + kept.for_weight;
            ++i;
          }
          break;
        case ComputeStep::kBackwardWeight:
          now -= kept.deferred + kept.for_weight;
          break;
      }
      of_rank.ever = std::max(of_rank.ever, now);
    }
  }
  return most;
}

}  // namespace troupe
