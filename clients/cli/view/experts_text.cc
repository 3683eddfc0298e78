#include "clients/cli/view/experts_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "clients/cli/view/format.h"
#include "proto/plan/ops/op_view.h"
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

}  // namespace

std::string ExpertsText(const Plan& plan, const std::string& indent) {
  const double worst = plan.prediction().worst_routing_seconds();
  for (const UnitTable& table : plan.tables()) {
    const SharedExperts shared = SharedIn(table);
    if (shared.ranks == 0) continue;
    return absl::StrCat(
        "  experts          ", shared.experts / shared.ranks, " of ",
        shared.experts, " on each of the ", shared.ranks, " ranks along ",
        shared.axes, "\n", indent, LoadText(plan, shared), "\n", indent,
        "at worst one rank gets all rows, ", shared.ranks,
        " times as many, in ", shared.rounds,
        shared.rounds == 1 ? " round" : " rounds",
        worst > 0 ? absl::StrCat(": ", SecondsText(worst), " a step") : "",
        "\n");
  }
  return "";
}

}  // namespace troupe
