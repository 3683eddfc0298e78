// A plan in the making: what every pass reads and changes. The planner fills in
// which rank holds what and in which order stages are computed; each pass adds
// one thing to the roles' programs; after the last pass the plan is complete.
#ifndef TROUPE_SCHEDULER_PASSES_DRAFT_H_
#define TROUPE_SCHEDULER_PASSES_DRAFT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/plan.pb.h"
#include "proto/plan/find_program.h"
#include "proto/plan/unit_passes.h"
#include "scheduler/pipelines/compute_order.h"

namespace troupe {

struct Draft {
  // Job, mesh, lanes, groups, units, stages and derived are set, and there is a
  // role for each place on the pipeline, in their order, with its placements;
  // such roles for each kind of replicas, one kind behind the other.
  Plan plan;
  // Of each pipeline rank, in a training step: of the replicas that run most
  // micro-batches, which most often are all.
  ComputeOrder compute_order;
  // Of the other kinds of replicas (proto/plan/replica_share.h), in their
  // order.
  std::vector<ComputeOrder> shorter_orders;
  // The contiguous units of each stage, ascending.
  std::vector<std::vector<int>> stage_units;
  // By pipeline rank: how many times as long it takes for the same work as the
  // fastest; empty: all are equally fast.
  std::vector<double> slowness;
  // Of each rank's worker; none: they are not known.
  std::vector<std::string> hosts;
  // Where parameters rest in slices, by role: the gathers of whole units run as
  // far ahead of their use as those, and gradients of such, have places within
  // this number of bytes; while they are used only, where they never have.
  // nullopt, and where there is no entry: one step of work ahead, for which all
  // have room.
  std::vector<absl::optional<int64_t>> unsharded_bytes;
};

// Index of the first group of all ranks, which sum their scalars in it; CHECKs
// that there is one, as the others below.
inline constexpr char kWorldGroup[] = "world";
bool HasWorldGroup(const Plan& plan);
int WorldGroup(const Plan& plan);

// Where there are islands: index of the first group of all ranks of an island,
// in which it sums the scalars of a step; -1: there is none. And that of the
// group of those at the same place of each island.
int IslandGroup(const Plan& plan);
int IslandsGroup(const Plan& plan);

// Index of the group over which pipelines move activations, or gradients.
int TransferGroup(const Plan& plan, bool gradient);
std::string TransferGroupName(bool gradient);

// Index of the group of neighbours along an axis within a stage, which exchange
// what their units need of one another.
int ExchangeGroup(const Plan& plan, const Op::Exchange& exchange);
std::string ExchangeGroupName(const Op::Exchange& exchange);

// Index of the group in which the lane of gathers meets the ranks over which a
// unit is dealt.
int GatherGroup(const Plan& plan, int dealt);
std::string GatherGroupName(const Group& dealt);

// Units whose parameters `unit` uses: itself and those that it is tied to. And
// those of them to whose gradients its BACKWARD_WEIGHT adds, as it uses
// parameters that are trained.
std::vector<int> GradientUnits(const Plan& plan, int unit);
std::vector<int> AddsToGradientsOf(const Plan& plan, const UnitPasses& passes,
                                   int unit);

// Appends an instruction of this kind for each part of a unit that the role
// holds: a slice of it each for those that have the same.
struct Dealt {
  Instruction::Kind kind;
  int lane = 0;
  bool frozen = false;  // of frozen parts, too
};
void DealParts(const Plan& plan, const Placement& placement, const Dealt& dealt,
               Program& program);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_DRAFT_H_
