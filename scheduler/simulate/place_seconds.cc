#include "scheduler/simulate/place_seconds.h"

#include <algorithm>
#include <map>
#include <utility>

#include "proto/plan/mesh.h"
#include "proto/plan/served.h"

namespace troupe {
namespace {

// Of a whole model.
Stage AllUnits(const Plan& plan) {
  Stage all;
  all.set_unit_count(plan.units_size());
  return all;
}

bool EquallyFast(const Plan& plan, const PlaceSeconds& places) {
  double least = SlowestOf(places.front(), AllUnits(plan)).seconds;
  double most = least;
  for (const std::vector<EqualRanks>& place : places) {
    const double seconds = SlowestOf(place, AllUnits(plan)).seconds;
    least = std::min(least, seconds);
    most = std::max(most, seconds);
  }
  return most <= (1 + kEqualSpeeds) * least;
}

}  // namespace

SlowestRank SlowestOf(const std::vector<EqualRanks>& place,
                      const Stage& stage) {
  SlowestRank slowest = {.rank = place.front().first};
  for (const EqualRanks& ranks : place) {
    double seconds = 0;
    for (int u = stage.unit(); u < stage.unit() + stage.unit_count(); ++u) {
      seconds += ranks.seconds[u];
    }
    if (seconds > slowest.seconds) slowest = {ranks.first, seconds};
  }
  return slowest;
}

PlaceSeconds UnequalPlaces(const Plan& plan, const CostModel& costs) {
  const int count = AxisSize(plan.mesh(), "pipeline");
  if (count == 1) return {};
  PlaceSeconds places(count);
  std::map<CostModel::Speed, std::vector<double>> known;
  std::vector<std::map<CostModel::Speed, bool>> seen(count);
  for (int rank = 0; rank < MeshSize(plan.mesh()); ++rank) {
    if (IsServer(plan, rank)) continue;  // it computes nothing
    const int place = CoordinateOn(plan.mesh(), "pipeline", rank);
    const CostModel::Speed speed = costs.SpeedOf(rank);
    if (!seen[place].emplace(speed, true).second) continue;
    const auto [found, is_new] = known.try_emplace(speed);
    for (int u = 0; is_new && u < plan.units_size(); ++u) {
      found->second.push_back(costs.UnitSeconds(rank, u));
    }
    places[place].push_back({.first = rank, .seconds = found->second});
  }
  if (known.size() == 1 || EquallyFast(plan, places)) return {};
  return places;
}

PlaceSeconds UnequalPlaces(const Plan& plan,
                           const std::vector<WorkerDescription>& workers) {
  const auto ranks = static_cast<size_t>(MeshSize(plan.mesh()));
  if (AxisSize(plan.mesh(), "pipeline") == 1 || workers.size() < ranks) {
    return {};
  }
  return UnequalPlaces(plan, CostModel(plan, workers));
}

}  // namespace troupe
