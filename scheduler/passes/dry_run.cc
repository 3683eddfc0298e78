#include "scheduler/passes/dry_run.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "scheduler/passes/nominal_cost.h"

namespace troupe {
namespace {

// Of the shortest step. Much less, and steps that are equal but for transfers
// come to one moment again; much more, and plans wait for transfers that are
// faster than that.
constexpr double kHandoverShare = 0.03;

class Run {
 public:
  Run(const Draft& draft, const ComputeOrder& order, int runs)
      : draft_(draft), order_(order), runs_(runs), next_(order.size(), 0) {
    for (size_t rank = 0; rank < order.size(); ++rank) {
      const std::vector<ComputeStep>& steps = order[rank];
      times_.emplace_back(steps.size());
      for (int run = 0; run < runs; ++run) {
        for (const ComputeStep& step : steps) {
          ends_[NameOf(step, run)] = std::nullopt;
        }
      }
      for (const ComputeStep& step : steps) {
        handover_ = std::min(handover_, kHandoverShare * SecondsOf(rank, step));
      }
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
      while (!AtEnd(rank)) Place(rank, last_);
    }
    return std::move(times_);
  }

 private:
  // Kind, stage, micro-batch, and the training step that it is part of.
  using Name = std::tuple<ComputeStep::Kind, int, int, int>;
  static Name NameOf(const ComputeStep& step, int run) {
    return {step.kind, step.stage, step.micro_batch, run + step.ahead};
  }

  bool AtEnd(size_t rank) const {
    return next_[rank] == order_[rank].size() * runs_;
  }
  const ComputeStep& StepAt(size_t rank) const {
    return order_[rank][next_[rank] % order_[rank].size()];
  }
  Name NameAt(size_t rank) const {
    const size_t run = next_[rank] / order_[rank].size();
    return NameOf(StepAt(rank), static_cast<int>(run));
  }

  // When the step is done that `name` names: 0 where these runs have none, for
  // then an earlier program has done it, and nothing where it has yet to run.
  std::optional<double> EndOf(const Name& name) const {
    const auto end = ends_.find(name);
    return end == ends_.end() ? 0.0 : end->second;
  }

  static std::vector<Name> WaitsOf(const Name& name) {
    const auto [kind, stage, m, step] = name;
    if (kind == ComputeStep::kForward) {
      return {{kind, stage - 1, m, step}};
    }
    if (kind == ComputeStep::kBackwardInput) {
      return {{ComputeStep::kForward, stage, m, step},
              {kind, stage + 1, m, step}};
    }
    return {{ComputeStep::kForward, stage, m, step}};
  }

  // Runs the rank's next step if that may run.
  bool Advance(size_t rank) {
    if (AtEnd(rank)) return false;
    double start = 0;
    for (const Name& name : WaitsOf(NameAt(rank))) {
      const std::optional<double> end = EndOf(name);
      if (!end.has_value()) return false;
      const bool handed_over =
          std::get<1>(name) != StepAt(rank).stage && *end > 0;
      start = std::max(start, *end + (handed_over ? handover_ : 0));
    }
    Place(rank, start);
    return true;
  }

  void Place(size_t rank, double start) {
    const size_t steps = order_[rank].size();
    const size_t index = next_[rank] % steps;
    if (next_[rank] > 0) {
      start = std::max(start, times_[rank][(index + steps - 1) % steps].end);
    }
    const ComputeStep& step = order_[rank][index];
    const double end = start + SecondsOf(rank, step);
    times_[rank][index] = {.start = start, .end = end, .gives = end};
    // Of one backward pass, the gradient is there when all of it is done.
    if (index + 1 < steps && OneBackward(step, order_[rank][index + 1])) {
      times_[rank][index].gives += SecondsOf(rank, order_[rank][index + 1]);
    }
    ends_[NameAt(rank)] = times_[rank][index].gives;
    last_ = std::max(last_, end);
    ++next_[rank];
  }

  double SecondsOf(size_t rank, const ComputeStep& step) const {
    double seconds = 0;
    for (const int u : draft_.stage_units.at(step.stage)) {
      const Unit& unit = draft_.plan.units(u);
      seconds += NominalSeconds(
          step.kind == ComputeStep::kForward         ? unit.forward()
          : step.kind == ComputeStep::kBackwardInput ? unit.backward_input()
                                                     : unit.backward_weight());
      if (step.kind == ComputeStep::kBackwardInput && unit.has_recompute()) {
        seconds += NominalSeconds(unit.recompute());
      }
    }
    return draft_.slowness.empty() ? seconds : seconds * draft_.slowness[rank];
  }

  const Draft& draft_;
  const ComputeOrder& order_;
  const int runs_;
  std::vector<size_t> next_;  // by rank, of all runs
  std::vector<std::vector<StepTimes>> times_;
  std::map<Name, std::optional<double>> ends_;
  double handover_ = std::numeric_limits<double>::infinity();
  double last_ = 0;
};

}  // namespace

std::vector<std::vector<StepTimes>> DryRun(const Draft& draft,
                                           const ComputeOrder& order,
                                           int runs) {
  return Run(draft, order, runs).ToTheEnd();
}

int RunsUntilSteady(const Draft& draft) {
  const Derived& derived = draft.plan.derived();
  if (derived.report_lag() == 0) return 1;
  // A rank is at most two micro-batches a stage away from its neighbours.
  const int ranks = static_cast<int>(draft.compute_order.size());
  return 3 + 2 * ranks / derived.micro_batches();
}

}  // namespace troupe
