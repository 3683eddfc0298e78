// How fast the devices at each place of a pipeline are: what their ranks take
// for each unit. Layers are cut into stages by this where places differ.
#ifndef TROUPE_SCHEDULER_SIMULATE_PLACE_SECONDS_H_
#define TROUPE_SCHEDULER_SIMULATE_PLACE_SECONDS_H_

#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/simulate/cost_model.h"

namespace troupe {

// Ranks at one place that are equally fast.
struct EqualRanks {
  int first = 0;                // the first of them
  std::vector<double> seconds;  // by unit: all passes over a micro-batch
};
// By place on the axis "pipeline": those there of every speed.
using PlaceSeconds = std::vector<std::vector<EqualRanks>>;

// Of machines that are the same two measurements differ. Places whose slowest
// ranks take times for the whole model that differ by less than this share
// count as equally fast.
inline constexpr double kEqualSpeeds = 0.1;

// Empty where all places are equally fast, and where there is one.
PlaceSeconds UnequalPlaces(const Plan& plan, const CostModel& costs);

// The same of a plan that has its mesh, lanes, units and tables, and nothing
// more; empty as well where there are fewer workers than ranks.
PlaceSeconds UnequalPlaces(const Plan& plan,
                           const std::vector<WorkerDescription>& workers);

// Seconds of the slowest of these for the units of a stage, and which it is.
struct SlowestRank {
  int rank = 0;
  double seconds = 0;
};
SlowestRank SlowestOf(const std::vector<EqualRanks>& place, const Stage& stage);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_PLACE_SECONDS_H_
