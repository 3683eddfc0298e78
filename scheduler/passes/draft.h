// A plan in the making: what every pass reads and changes. The planner fills in
// who holds what and in which order stages are computed; each pass adds one
// thing to the ranks' programs; after the last pass the plan is complete.
#ifndef TROUPE_SCHEDULER_PASSES_DRAFT_H_
#define TROUPE_SCHEDULER_PASSES_DRAFT_H_

#include <cstdint>
#include <string>
#include <vector>

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

// Index of the group whose gradients of `unit` are summed.
int ReplicaGroup(const Plan& plan, int unit);

// Index of the group of all ranks; CHECKs that there is one.
inline constexpr char kWorldGroup[] = "world";
int WorldGroup(const Plan& plan);

// Index of the group over which the pipeline of this place on the data axis
// moves what `lane` carries.
int TransferGroup(const Plan& plan, int data_index, Lane lane);
std::string TransferGroupName(int data_index, Lane lane);

// Units whose gradient buffers a BACKWARD_WEIGHT of `unit` adds to: itself and
// those that it is tied to.
std::vector<int> GradientUnits(const Plan& plan, int unit);

// Splits the units among the ranks of their replica groups, each unit to one
// rank, by bytes as evenly as the largest-first rule does it: result[rank]
// lists units, ascending.
std::vector<std::vector<int>> SpreadUnits(const Plan& plan);

// Bytes of a unit's flat buffer in f32.
int64_t FlatBytes(const Unit& unit);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_DRAFT_H_
