// The bound of a candidate's memory.
#include <algorithm>
#include <functional>
#include <utility>

#include "proto/base/status.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/planner/fit_stages.h"
#include "scheduler/search/estimate.h"

namespace troupe {
namespace {

// What is summed here as if it were whole at once may come in turn: plans of
// drawn spaces need up to 0.4 % less. A bound leaves out one part in kMargin.
constexpr int64_t kMargin = 100;
// The same where units have strategies of their own. Plans of drawn spaces need
// up to 9 % less.
constexpr int64_t kMarginOfStrategies = 10;

int64_t MarginOf(const ParallelismSpec& way) {
  return way.strategies().empty() ? kMargin : kMarginOfStrategies;
}

int64_t LessMargin(int64_t bytes, const ParallelismSpec& way) {
  return bytes - bytes / MarginOf(way);
}

int64_t SharedBytes(int64_t bytes, double share) {
  return static_cast<int64_t>(static_cast<double>(bytes) * share);
}

int64_t AtRest(const UnitCost& unit, const ZeroRow& zero, int slices) {
  const double at_rest = slices > 1 ? unit.ShareAtRest(slices) : 1;
  const auto rests = [at_rest](int64_t bytes, bool dealt) {
    return dealt ? SharedBytes(bytes, at_rest) : bytes;
  };
  return rests(unit.parameter_bytes, zero.parameters) +
         rests(unit.gradient_bytes, zero.gradients) +
         rests(unit.state_bytes, zero.states);
}

}  // namespace

// Of one stage: what rests, what it keeps of each micro-batch, and what it
// needs besides while a backward pass runs, when what units behind have kept is
// free.
struct Estimator::StageBytes {
  int64_t at_rest = 0;
  int64_t kept = 0;
  int64_t for_weight = 0;  // of these
  int64_t deferred = 0;
  int64_t pass = 0;
  int64_t workspace = 0;
};

Estimator::StageBytes Estimator::BytesOf(const ParallelismSpec& way,
                                         const Shape& shape,
                                         const UnitCosts& costs,
                                         const Stages& stages, size_t stage) {
  const ZeroRow zero = ZeroRowOf(way);
  const auto unit_of = [&](int u) -> const UnitCost& {
    return costs.kinds[costs.kind_of_unit[u]];
  };
  StageBytes bytes;
  const std::vector<int>& units = stages.units[stage];
  for (auto u = units.rbegin(); u != units.rend(); ++u) {
    const UnitCost& unit = unit_of(*u);
    const int slices = shape.SlicesOf(unit);
    bytes.at_rest += AtRest(unit, zero, slices);
    int64_t whole = 0;
    if (slices > 1) {
      whole = SharedBytes((zero.parameters ? unit.parameter_bytes : 0) +
                              (zero.gradients ? unit.gradient_bytes : 0),
                          unit.ShareDealt(slices));
    }
    bytes.pass = std::max(bytes.pass, unit.pass_bytes + whole - bytes.kept);
    bytes.workspace = std::max(bytes.workspace, unit.workspace_bytes);
    bytes.kept += unit.kept_bytes;
    bytes.for_weight += unit.kept_for_weight;
    bytes.deferred += unit.deferred_bytes;
  }
  // What a stage hands on it does not keep, and what it is handed it does.
  const auto add_output = [&](int u, int sign) {
    const UnitCost& unit = unit_of(u);
    bytes.kept += sign * unit.output_bytes;
    if (unit.output_is_for_weight) bytes.for_weight += sign * unit.output_bytes;
  };
  if (stage + 1 < stages.units.size()) add_output(units.back(), -1);
  if (stage > 0) add_output(stages.units[stage - 1].back(), 1);
  return bytes;
}

Estimate Estimator::LeastOf(const Candidate& candidate,
                            const UnitCosts& costs) {
  const ParallelismSpec& way = candidate.parallelism;
  const Shape shape = ShapeOf(way, candidate.micro_batch_size);
  const std::vector<int64_t>& rooms = PlacesOf(shape).room;
  const ZeroRow zero = ZeroRowOf(way);
  Estimate least = {.seconds = LeastSeconds(shape, costs)};
  for (const int kind : costs.kind_of_unit) {
    const UnitCost& unit = costs.kinds[kind];
    least.bytes += AtRest(unit, zero, shape.SlicesOf(unit)) + unit.kept_bytes;
  }
  least.bytes /= shape.pipeline;
  least.bytes = LessMargin(least.bytes, way);
  least.room = *std::max_element(rooms.begin(), rooms.end());
  least.lacks = std::max<int64_t>(0, least.bytes - least.room);
  least.lacks_for_kept = least.lacks > 0;
  return least;
}

std::vector<int64_t> Estimator::SetMemory(
    const ParallelismSpec& way, const Shape& shape, const UnitCosts& costs,
    const Stages& stages, const Places& places, KnownOrder& order,
    Estimate& estimate) const {
  std::vector<StageBytes> by_place(shape.pipeline);
  std::vector<KeptBytes> kept;
  for (size_t s = 0; s < stages.units.size(); ++s) {
    const StageBytes bytes = BytesOf(way, shape, costs, stages, s);
    kept.push_back({.for_input = bytes.kept - bytes.for_weight,
                    .for_weight = bytes.for_weight,
                    .deferred = bytes.deferred});
    for (const int place : stages.holders[s]) {
      StageBytes& all = by_place[place];
      // Which of its stages computes when it keeps most, is not asked.
      all.pass = all.at_rest == 0 ? bytes.pass : std::min(all.pass, bytes.pass);
      all.at_rest += bytes.at_rest;
      all.workspace = std::max(all.workspace, bytes.workspace);
    }
  }
  if (order.kept != kept) {
    order.kept = kept;
    order.most_kept = MostKept(order.order, kept);
  }
  const int64_t scratch = workers_[0].has_gpu() ? costs.scratch_bytes : 0;
  std::vector<int64_t> needs;
  estimate.lacks_for_kept = false;
  for (int place = 0; place < shape.pipeline; ++place) {
    const StageBytes& all = by_place[place];
    const MostBytes& kept = order.most_kept[place];
    const int64_t sum = all.at_rest +
                        std::max(kept.ever, kept.going_back + all.pass) +
                        all.workspace + scratch;
    const int64_t bytes = LessMargin(sum, way);
    const int64_t room = places.room[place];
    needs.push_back(bytes);
    estimate.lacks_for_kept |= LessMargin(all.at_rest + kept.ever, way) > room;
    const auto part = [](int64_t bytes, int64_t of) {
      return static_cast<double>(bytes) / static_cast<double>(of);
    };
    if (place == 0 || std::make_pair(part(bytes, room), bytes) >
                          std::make_pair(part(estimate.bytes, estimate.room),
                                         estimate.bytes)) {
      estimate.bytes = bytes;
      estimate.room = room;
    }
  }
  estimate.lacks = std::max<int64_t>(0, estimate.bytes - estimate.room);
  return needs;
}

bool Estimator::MayMoveUnits(const ParallelismSpec& way, const Places& places) {
  return way.pipeline() > 1 && way.stages().empty() &&
         std::adjacent_find(places.room.begin(), places.room.end(),
                            std::not_equal_to<>()) != places.room.end();
}

absl::StatusOr<Estimator::Stages> Estimator::FitStages(
    const ParallelismSpec& way, const Shape& shape, const UnitCosts& costs,
    const Places& places, KnownOrder& order, StageLayout layout, Stages stages,
    std::vector<int64_t> needs, Estimate& estimate) const {
  constexpr int kCutsMax = 4;
  const ZeroRow zero = ZeroRowOf(way);
  StageMemory memory;
  memory.in_flight = InFlight(order.order, stages.units.size());
  for (const int kind : costs.kind_of_unit) {
    const UnitCost& unit = costs.kinds[kind];
    memory.resident.push_back(AtRest(unit, zero, shape.SlicesOf(unit)));
    memory.kept.push_back(unit.kept_bytes);
  }
  for (int i = 0; i < kCutsMax && !estimate.fits(); ++i) {
    memory.room = places.room;
    for (size_t p = 0; p < needs.size(); ++p) memory.room[p] -= needs[p];
    for (size_t s = 0; s < stages.units.size(); ++s) {
      for (const int place : stages.holders[s]) {
        for (const int u : stages.units[s]) {
          memory.room[place] +=
              memory.resident[u] + memory.in_flight[s] * memory.kept[u];
        }
      }
    }
    layout.memory = memory;
    ASSIGN_OR_RETURN(Stages other, CutStages(costs, layout, way));
    if (other.units == stages.units) break;
    stages = std::move(other);
    needs = SetMemory(way, shape, costs, stages, places, order, estimate);
  }
  return stages;
}

}  // namespace troupe
