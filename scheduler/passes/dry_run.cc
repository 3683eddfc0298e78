#include "scheduler/passes/dry_run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "scheduler/passes/nominal_cost.h"

namespace troupe {
namespace {

class Run {
 public:
  Run(const Draft& draft, const ComputeOrder& order)
      : draft_(draft), order_(order), next_(order.size(), 0) {
    for (const std::vector<ComputeStep>& steps : order) {
      times_.emplace_back(steps.size());
      for (const ComputeStep& step : steps) ends_[NameOf(step)] = std::nullopt;
    }
  }

  std::vector<std::vector<StepTimes>> ToTheEnd() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t rank = 0; rank < order_.size(); ++rank) {
        while (Advance(rank)) moved = true;
      }
    }
    for (size_t rank = 0; rank < order_.size(); ++rank) {
      while (next_[rank] < order_[rank].size()) Place(rank, last_);
    }
    return std::move(times_);
  }

 private:
  // Kind, stage, micro-batch and ahead.
  using Name = std::tuple<ComputeStep::Kind, int, int, int>;
  static Name NameOf(const ComputeStep& step) {
    return {step.kind, step.stage, step.micro_batch, step.ahead};
  }

  // When the step is done that `name` names: 0 where this program has none, for
  // then an earlier program has done it, and nothing where it has yet to run.
  std::optional<double> EndOf(const Name& name) const {
    const auto end = ends_.find(name);
    return end == ends_.end() ? 0.0 : end->second;
  }

  std::vector<Name> WaitsOf(const ComputeStep& step) const {
    const auto [kind, stage, m, ahead] = NameOf(step);
    if (kind == ComputeStep::kForward) {
      return {{kind, stage - 1, m, ahead}};
    }
    if (kind == ComputeStep::kBackwardInput) {
      return {{ComputeStep::kForward, stage, m, ahead},
              {kind, stage + 1, m, ahead}};
    }
    return {{ComputeStep::kForward, stage, m, ahead},
            {ComputeStep::kBackwardInput, stage, m, ahead}};
  }

  // Runs the rank's next step if that may run.
  bool Advance(size_t rank) {
    if (next_[rank] == order_[rank].size()) return false;
    double start = 0;
    for (const Name& name : WaitsOf(order_[rank][next_[rank]])) {
      const std::optional<double> end = EndOf(name);
      if (!end.has_value()) return false;
      start = std::max(start, *end);
    }
    Place(rank, start);
    return true;
  }

  void Place(size_t rank, double start) {
    const size_t index = next_[rank]++;
    if (index > 0) start = std::max(start, times_[rank][index - 1].end);
    const double end = start + SecondsOf(order_[rank][index]);
    times_[rank][index] = {.start = start, .end = end};
    ends_[NameOf(order_[rank][index])] = end;
    last_ = std::max(last_, end);
  }

  double SecondsOf(const ComputeStep& step) const {
    double seconds = 0;
    for (const int u : draft_.stage_units.at(step.stage)) {
      const Unit& unit = draft_.plan.units(u);
      seconds += NominalSeconds(
          step.kind == ComputeStep::kForward         ? unit.forward()
          : step.kind == ComputeStep::kBackwardInput ? unit.backward_input()
                                                     : unit.backward_weight());
    }
    return seconds;
  }

  const Draft& draft_;
  const ComputeOrder& order_;
  std::vector<size_t> next_;  // by rank
  std::vector<std::vector<StepTimes>> times_;
  std::map<Name, std::optional<double>> ends_;
  double last_ = 0;
};

}  // namespace

std::vector<std::vector<StepTimes>> DryRun(const Draft& draft,
                                           const ComputeOrder& order) {
  return Run(draft, order).ToTheEnd();
}

}  // namespace troupe
