#include "scheduler/passes/transfers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace troupe {
namespace {

// The rank that computes a stage's micro-batch.
using Homes = std::map<std::pair<int, int>, int>;

Homes HomesOf(const ComputeOrder& order) {
  Homes homes;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    for (const ComputeStep& step : order[rank]) {
      if (step.kind != ComputeStep::kForward) continue;
      homes[{step.stage, step.micro_batch}] = static_cast<int>(rank);
    }
  }
  return homes;
}

// Times that differ by less are the same but for rounding: far less than the
// shortest step, so that what depends on a transfer is always later.
double Quantum(const std::vector<std::vector<StepTimes>>& times) {
  double shortest = std::numeric_limits<double>::max();
  for (const std::vector<StepTimes>& of_rank : times) {
    for (const StepTimes& step : of_rank) {
      shortest = std::min(shortest, step.end - step.start);
    }
  }
  return shortest * 1e-3;
}

}  // namespace

std::vector<StageTransfer> TransfersOf(
    const Draft& draft, const ComputeOrder& order, const ComputeOrder& homes_in,
    const std::vector<std::vector<StepTimes>>& times) {
  const Homes homes = HomesOf(homes_in);
  const int stages = static_cast<int>(draft.stage_units.size());
  std::vector<StageTransfer> transfers;
  for (int from = 0; from < static_cast<int>(order.size()); ++from) {
    for (size_t i = 0; i < order[from].size(); ++i) {
      const ComputeStep& step = order[from][i];
      const bool forward = step.kind == ComputeStep::kForward;
      if (step.kind == ComputeStep::kBackwardWeight) continue;
      const int other = forward ? step.stage + 1 : step.stage - 1;
      if (other < 0 || other >= stages) continue;
      const int to = homes.at({other, step.micro_batch});
      if (to == from) continue;
      const int lower_stage = std::min(step.stage, other);
      const int unit = draft.stage_units[lower_stage].back();
      if (!forward && !OutputHasGradient(draft.plan, unit)) continue;
      transfers.push_back({.gradient = !forward,
                           .from = from,
                           .to = to,
                           .unit = unit,
                           .micro_batch = step.micro_batch,
                           .ahead = step.ahead,
                           .time = times[from][i].gives});
    }
  }
  const double quantum = Quantum(times);
  std::stable_sort(transfers.begin(), transfers.end(),
                   [quantum](const StageTransfer& a, const StageTransfer& b) {
                     const auto key = [quantum](const StageTransfer& t) {
                       return std::make_tuple(std::round(t.time / quantum),
                                              t.from, t.gradient);
                     };
                     return key(a) < key(b);
                   });
  return transfers;
}

}  // namespace troupe
