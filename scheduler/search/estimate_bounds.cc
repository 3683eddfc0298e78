// What no step of a candidate is shorter than, and no rank's memory smaller, in
// less time than an estimate takes.
#include <algorithm>
#include <map>

#include "proto/base/status.h"
#include "scheduler/search/estimate.h"

namespace troupe {
namespace {

// Of all passes over a micro-batch, on a rank that has all units.
double SecondsOfModel(const UnitCosts& costs, const RankSpeed& speed) {
  double seconds = 0;
  for (const int kind : costs.kind_of_unit) {
    const UnitCost& unit = costs.kinds[kind];
    seconds += unit.forward.With(speed) +
               std::min(unit.backward.With(speed),
                        unit.input.With(speed) + unit.weight.With(speed));
  }
  return seconds;
}

}  // namespace

// Of the units alone, on places that all have work all the time.
double Estimator::LeastSeconds(const Shape& shape, const UnitCosts& costs) {
  const Places& places = PlacesOf(shape);
  std::map<RankSpeed, double> of_model;  // one micro-batch
  double at_once = 0;                    // models in a second, on all places
  for (const std::map<RankSpeed, int>& place : places.speeds) {
    double speed_of_place = 0;
    int ranks = 0;
    for (const auto& [speed, count] : place) {
      const auto [found, is_new] = of_model.try_emplace(speed);
      if (is_new) found->second = SecondsOfModel(costs, speed);
      speed_of_place += count / found->second;
      ranks += count;
    }
    at_once += speed_of_place / ranks;
  }
  return shape.micro_batches / at_once;
}

absl::StatusOr<double> Estimator::LeastSecondsOf(const Candidate& candidate) {
  ASSIGN_OR_RETURN(const UnitCosts* const costs, LeastCostsOf(candidate));
  const ParallelismSpec& way = candidate.parallelism;
  const Shape shape = ShapeOf(way, candidate.micro_batch_size);
  const double seconds = LeastSeconds(shape, *costs);
  if (shape.pipeline == 1 || AreUnlike()) return seconds;
  ASSIGN_OR_RETURN(
      const KnownOrder* const order,
      OrderOf(way, std::min(shape.micro_batches, kMore * shape.pipeline)));
  const auto stages = static_cast<double>(order->holders.size());
  const RankSpeed& speed = PlacesOf(shape).speeds.front().begin()->first;
  double through = 0;  // all stages, and back
  for (const int kind : costs->kind_of_unit) {
    const UnitCost& unit = costs->kinds[kind];
    through += unit.forward.With(speed) +
               std::min(unit.input.With(speed), unit.backward.With(speed));
  }
  return seconds + through * order->stages_before / stages;
}

absl::StatusOr<Estimate> Estimator::BoundOf(const Candidate& division) {
  ASSIGN_OR_RETURN(const UnitCosts* const costs, LeastCostsOf(division));
  const Shape shape = ShapeOf(division.parallelism, division.micro_batch_size);
  const std::vector<int64_t>& rooms = PlacesOf(shape).room;
  const int64_t room = *std::max_element(rooms.begin(), rooms.end());
  int64_t bytes = 0;  // of all units, with one micro-batch in flight
  int64_t most = 0;   // of one unit while it computes
  for (const int kind : costs->kind_of_unit) {
    const UnitCost& unit = costs->kinds[kind];
    const int64_t at_rest =
        (unit.parameter_bytes + unit.gradient_bytes + unit.state_bytes) /
        shape.DealtOf(unit);
    bytes += at_rest + unit.output_bytes;
    most = std::max(most, at_rest + unit.workspace_bytes);
  }
  Estimate bound = {.seconds = LeastSeconds(shape, *costs),
                    .bytes = std::max(bytes / shape.pipeline, most)};
  bound.lacks = std::max<int64_t>(0, bound.bytes - room);
  bound.length = LengthOf(shape, *costs);
  return bound;
}

}  // namespace troupe
