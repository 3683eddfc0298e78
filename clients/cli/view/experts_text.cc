#include "clients/cli/view/experts_text.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/view/format.h"
#include "proto/plan/groups.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// Of the layers of experts in a table; they are alike.
struct SharedExperts {
  std::string axes;
  int ranks = 0;  // 0: no layer, or each rank has all experts
  int64_t experts = 0;
  int rounds = 0;
  // Rows that the busiest rank is expected to get, over those of an even load.
  double busiest = 0;
};

SharedExperts SharedIn(const UnitTable& table) {
  SharedExperts shared;
  double even = 1;
  for (const Op& op : table.ops()) {
    const OpView view(table, op);
    if (op.kind() == Op::DISPATCH) {
      even = Rows(view.output("rows"));
      shared.busiest = 0;
    }
    if (op.kind() != Op::REGROUP) continue;
    shared.axes = absl::StrJoin(op.round().axes(), " x ");
    shared.ranks = op.round().ranks();
    shared.experts = ColumnsOf(view.input("offsets")) - 1;
    shared.rounds = std::max(shared.rounds, op.round().number() + 1);
    shared.busiest += Rows(view.input("x")) / even;
  }
  return shared;
}

std::string LoadText(const Plan& plan, const SharedExperts& shared) {
  if (plan.job().model().experts().load() != "measured") {
    return "predicted with an even load";
  }
  return absl::StrCat(
      "predicted with the measured load: the busiest rank gets ",
      NumberText(shared.busiest, 2), " times the rows of an even one");
}

bool HasExperts(const Unit& unit, const Range& part) {
  for (const Parameter& parameter : unit.parameters()) {
    if (parameter.offset() < part.begin || parameter.offset() >= part.end) {
      continue;
    }
    if (parameter.dims().empty()) continue;
    const auto& sections = parameter.dims(0).sections();
    if (!sections.empty() && sections[0].kind() == Dim::EXPERT_WEIGHTS) {
      return true;
    }
  }
  return false;
}

// Over how many ranks the layer's experts are dealt, and all else; empty where
// nothing of it is.
std::string ShardingText(const Plan& plan, int table) {
  for (const Role& role : plan.roles()) {
    for (const Placement& placement : role.placements()) {
      const Unit& unit = plan.units(placement.unit());
      if (!unit.has_table() || unit.table() != table) continue;
      int experts = 1;
      int others = 1;
      for (int p = 0; p < placement.parts_size(); ++p) {
        const Placement::Part& part = placement.parts(p);
        if (!part.has_dealt()) continue;
        int& ranks = HasExperts(unit, RangeOfPart(unit, p)) ? experts : others;
        ranks = GroupSize(plan.mesh(), plan.groups(part.dealt()));
      }
      if (experts == 1 && others == 1) return "";
      const auto over = [](int ranks) {
        return ranks == 1 ? std::string("not partitioned")
                          : absl::StrCat("partitioned over ", ranks, " ranks");
      };
      return absl::StrCat("experts are ", over(experts),
                          ", the rest of their layers is ", over(others));
    }
  }
  return "";
}

}  // namespace

std::string ExpertsText(const Plan& plan, const std::string& indent) {
  const double worst = plan.prediction().worst_routing_seconds();
  for (int t = 0; t < plan.tables_size(); ++t) {
    const SharedExperts shared = SharedIn(plan.tables(t));
    if (shared.ranks == 0) continue;
    const std::string sharding = ShardingText(plan, t);
    return absl::StrCat(
        "  experts          ", shared.experts / shared.ranks, " of ",
        shared.experts, " on each of the ", shared.ranks, " ranks along ",
        shared.axes, "\n",
        sharding.empty() ? "" : absl::StrCat(indent, sharding, "\n"), indent,
        LoadText(plan, shared), "\n", indent,
        "at worst one rank gets all rows, ", shared.ranks,
        " times as many, in ", shared.rounds,
        shared.rounds == 1 ? " round" : " rounds",
        worst > 0 ? absl::StrCat(": ", SecondsText(worst), " a step") : "",
        "\n");
  }
  return "";
}

}  // namespace troupe
