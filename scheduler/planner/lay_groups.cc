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
  for (const Stage& stage : plan.stages()) {
    for (const int p : stage.pipeline_ranks()) {
      for (int i = 0; i < PipelineCount(plan.mesh()); ++i) {
        const int rank = RankOfPipeline(plan.mesh(), i, p);
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

// Who sums gradients of a part with one another: those who have the same of it,
// or a summand.
std::map<std::vector<int>, Ranks> SummedTogether(const Plan& plan,
                                                 const Ranks& holders,
                                                 const Unit::Part& part) {
  std::map<std::vector<int>, Ranks> together;  // by what they have
  for (const int rank : holders) {
    std::vector<int> places = Coordinates(plan.mesh(), rank);
    for (int i = 0; i < plan.mesh().axes_size(); ++i) {
      const std::string& axis = plan.mesh().axes(i).name();
      if (axis == "pipeline" || axis == "data") places[i] = 0;
      for (const Unit::Part::Share& share : part.shares()) {
        if (share.axis() == axis && share.summed()) places[i] /= share.copies();
      }
    }
    together[places].insert(rank);
  }
  return together;
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
  for (int i = 0; i < PipelineCount(plan.mesh()); ++i) {
    Ranks ranks;
    for (int p = 0; p < AxisSize(plan.mesh(), "pipeline"); ++p) {
      ranks.insert(RankOfPipeline(plan.mesh(), i, p));
    }
    AddGroup(TransferGroupName(i, ACTIVATIONS), ranks,
             "hand activations to the next stage", plan);
    AddGroup(TransferGroupName(i, GRADIENTS), ranks,
             "hand gradients of activations to the stage before", plan);
  }
}

void AddExchangeGroups(Plan& plan) {
  for (const Axis& axis : plan.mesh().axes()) {
    if (axis.name() == "pipeline" || axis.name() == "data") continue;
    if (axis.size() == 1) continue;
    for (const Group& group :
         GroupsAlong(plan.mesh(), axis.name(), "exchange what units need")) {
      *plan.add_groups() = group;
    }
  }
}

}  // namespace

void LayGroups(Plan& plan) {
  const bool pipelined = AxisSize(plan.mesh(), "pipeline") > 1;
  const bool only_data = AxisSize(plan.mesh(), "data") == MeshSize(plan.mesh());
  const std::vector<Ranks> holders = Holders(plan);
  std::map<Ranks, int> groups;
  const auto group_of = [&](const Ranks& ranks) {
    const auto [found, is_new] = groups.try_emplace(ranks, 0);
    if (is_new) {
      const std::string name =
          absl::StrCat(only_data ? "data-" : "replicas-", groups.size() - 1);
      found->second = AddGroup(
          name, ranks,
          only_data ? "sum gradients over data replicas"
                    : "sum gradients over the ranks that hold the same units",
          plan);
    }
    return found->second;
  };
  // By unit, then by rank: unit by unit the groups are named.
  std::vector<std::map<int, Placement>> placed(plan.units_size());
  for (int u = 0; u < plan.units_size(); ++u) {
    for (const int rank : holders[u]) {
      placed[u][rank].set_unit(u);
      placed[u][rank].set_rank(rank);
    }
    for (const Unit::Part& part : plan.units(u).parts()) {
      for (const auto& [piece, ranks] :
           SummedTogether(plan, holders[u], part)) {
        const int group = group_of(ranks);
        for (const int rank : ranks) placed[u][rank].add_groups(group);
      }
    }
  }
  if (!only_data) {
    Ranks all;
    for (const RankPlan& rank : plan.ranks()) all.insert(rank.rank());
    AddGroup(kWorldGroup, all, "sum loss and gradient norm", plan);
  }
  if (pipelined) AddTransferGroups(plan);
  AddExchangeGroups(plan);
  for (int r = 0; r < plan.ranks_size(); ++r) {
    for (int u = 0; u < plan.units_size(); ++u) {
      const auto found = placed[u].find(r);
      if (found != placed[u].end()) {
        *plan.add_placements() = std::move(found->second);
      }
    }
  }
}

}  // namespace troupe
