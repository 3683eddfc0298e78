#include "scheduler/passes/transfers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "proto/plan/edges.h"

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

// An output that a step of a stage has made for another stage, or a gradient.
struct StageEdge {
  bool gradient = false;
  int stage = 0;  // the other
  int unit = 0;
  int output = 0;
};

// By stage: forward those that it makes, backward those whose gradients it
// makes. Outputs of one value move once to a stage.
std::vector<std::vector<StageEdge>> Crossing(const Draft& draft) {
  std::vector<int> stage_of(draft.plan.units_size(), 0);
  for (size_t s = 0; s < draft.stage_units.size(); ++s) {
    for (const int u : draft.stage_units[s]) stage_of[u] = static_cast<int>(s);
  }
  std::vector<std::vector<StageEdge>> crossing(draft.stage_units.size());
  std::set<std::tuple<int, int, int>> moved;  // unit, value, to a stage
  const Edges edges(draft.plan);
  for (const Edge& edge : edges.all()) {
    const int from = stage_of[edge.from];
    const int to = stage_of[edge.to];
    if (from == to) continue;
    if (moved.insert({edge.from, edge.value, to}).second) {
      crossing[from].push_back({.gradient = false,
                                .stage = to,
                                .unit = edge.from,
                                .output = edge.value});
    }
    if (!edge.has_gradient) continue;
    crossing[to].push_back({.gradient = true,
                            .stage = from,
                            .unit = edge.from,
                            .output = edge.output});
  }
  return crossing;
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
  const std::vector<std::vector<StageEdge>> crossing = Crossing(draft);
  std::vector<StageTransfer> transfers;
  // To a rank: unit, output, micro-batch, ahead.
  std::set<std::tuple<int, int, int, int, int>> sent;
  for (int from = 0; from < static_cast<int>(order.size()); ++from) {
    for (size_t i = 0; i < order[from].size(); ++i) {
      const ComputeStep& step = order[from][i];
      const bool forward = step.kind == ComputeStep::kForward;
      if (step.kind == ComputeStep::kBackwardWeight) continue;
      for (const StageEdge& edge : crossing.at(step.stage)) {
        if (edge.gradient == forward) continue;
        const int to = homes.at({edge.stage, step.micro_batch});
        if (to == from) continue;
        // What two stages of a rank read goes there once.
        if (forward && !sent.insert({to, edge.unit, edge.output,
                                     step.micro_batch, step.ahead})
                            .second) {
          continue;
        }
        transfers.push_back({.gradient = !forward,
                             .from = from,
                             .to = to,
                             .unit = edge.unit,
                             .output = edge.output,
                             .micro_batch = step.micro_batch,
                             .ahead = step.ahead,
                             .time = times[from][i].gives});
      }
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
