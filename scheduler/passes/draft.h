// A plan in the making: what every pass reads and changes. The planner fills in
// who holds what and in which order stages are computed; each pass adds one
// thing to the ranks' programs; after the last pass the plan is complete.
#ifndef TROUPE_SCHEDULER_PASSES_DRAFT_H_
#define TROUPE_SCHEDULER_PASSES_DRAFT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/plan.pb.h"
#include "proto/plan/find_program.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

struct Draft {
  // Job, mesh, groups, units, stages, placements and derived are set, and there
  // is an empty RankPlan for each rank.
  Plan plan;
  // Of each pipeline rank, in a training step.
  ComputeOrder compute_order;
  // The contiguous units of each stage, ascending.
  std::vector<std::vector<int>> stage_units;
};

// Units on this rank, ascending; those too of which it holds the parameters
// only, since a unit of its own is tied to them.
std::vector<int> UnitsOf(const Plan& plan, int rank);

// Those of this rank, by unit.
std::vector<Placement> PlacementsOf(const Plan& plan, int rank);

// Index of the group of all ranks; CHECKs that there is one.
inline constexpr char kWorldGroup[] = "world";
int WorldGroup(const Plan& plan);

// Index of the group over which that pipeline moves what `lane` carries.
int TransferGroup(const Plan& plan, int pipeline, Lane lane);
std::string TransferGroupName(int pipeline, Lane lane);

// Index of the group of the rank's neighbours along an axis within a stage, who
// exchange what their units need of one another.
int ExchangeGroup(const Plan& plan, absl::string_view axis, int rank);

// Units whose gradient buffers a BACKWARD_WEIGHT of `unit` adds to: itself and
// those that it is tied to.
std::vector<int> GradientUnits(const Plan& plan, int unit);

// What one rank does for all that hold the same.
struct Duty {
  int unit = 0;
  int part = 0;  // of Unit.parts the first; and all behind it
};
// Splits the units among the ranks that hold them, every part to one of those
// that hold the same of it, by bytes as evenly as the largest-first rule does
// it: result[rank], by unit.
std::vector<std::vector<Duty>> SpreadUnits(const Plan& plan);

// Bytes of a unit's flat buffer in f32.
int64_t FlatBytes(const Unit& unit);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_DRAFT_H_
