#include "scheduler/planner/lay_groups.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/plan/mesh.h"
#include "scheduler/passes/draft.h"

namespace troupe {
namespace {

using Ranks = std::set<int>;

// By unit.
std::vector<Ranks> Holders(const Plan& plan) {
  std::vector<Ranks> holders(plan.units_size());
  const int data = AxisSize(plan.mesh(), "data");
  for (const Stage& stage : plan.stages()) {
    for (const int p : stage.pipeline_ranks()) {
      for (int d = 0; d < data; ++d) {
        const int rank = RankAt(plan.mesh(), {p, d});
        for (int u = stage.unit(); u < stage.unit() + stage.unit_count(); ++u) {
          for (const int owner : GradientUnits(plan, u)) {
            holders[owner].insert(rank);
          }
        }
      }
    }
  }
  return holders;
}

int AddGroup(const std::string& name, const Ranks& ranks,
             const std::string& purpose, Plan& plan) {
  Group& group = *plan.add_groups();
  group.set_name(name);
  group.set_purpose(purpose);
  for (const int rank : ranks) group.add_ranks(rank);
  return plan.groups_size() - 1;
}

void AddTransferGroups(Plan& plan) {
  const int pipeline = AxisSize(plan.mesh(), "pipeline");
  for (int d = 0; d < AxisSize(plan.mesh(), "data"); ++d) {
    Ranks ranks;
    for (int p = 0; p < pipeline; ++p) {
      ranks.insert(RankAt(plan.mesh(), {p, d}));
    }
    AddGroup(TransferGroupName(d, ACTIVATIONS), ranks,
             "hand activations to the next stage", plan);
    AddGroup(TransferGroupName(d, GRADIENTS), ranks,
             "hand gradients of activations to the stage before", plan);
  }
}

}  // namespace

void LayGroups(Plan& plan) {
  const bool pipelined = AxisSize(plan.mesh(), "pipeline") > 1;
  const std::vector<Ranks> holders = Holders(plan);
  std::map<Ranks, int> groups;
  std::vector<int> group_of;  // by unit
  for (const Ranks& ranks : holders) {
    const auto [found, is_new] = groups.try_emplace(ranks, 0);
    if (is_new) {
      const std::string name =
          absl::StrCat(pipelined ? "replicas-" : "data-", groups.size() - 1);
      found->second = AddGroup(
          name, ranks,
          pipelined ? "sum gradients over the ranks that hold the same units"
                    : "sum gradients over data replicas",
          plan);
    }
    group_of.push_back(found->second);
  }
  if (pipelined) {
    Ranks all;
    for (const RankPlan& rank : plan.ranks()) all.insert(rank.rank());
    AddGroup(kWorldGroup, all, "sum loss and gradient norm", plan);
    AddTransferGroups(plan);
  }
  for (int r = 0; r < plan.ranks_size(); ++r) {
    for (int u = 0; u < plan.units_size(); ++u) {
      if (holders[u].count(r) == 0) continue;
      Placement& placement = *plan.add_placements();
      placement.set_unit(u);
      placement.set_rank(r);
      placement.set_replica_group(group_of[u]);
    }
  }
}

}  // namespace troupe
