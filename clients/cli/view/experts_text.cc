#include "clients/cli/view/experts_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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
};

SharedExperts SharedIn(const UnitTable& table) {
  SharedExperts shared;
  for (const Op& op : table.ops()) {
    if (op.kind() != Op::REGROUP) continue;
    shared.axes = absl::StrJoin(op.round().axes(), " x ");
    shared.ranks = op.round().ranks();
    shared.experts = ColumnsOf(OpView(table, op).input("offsets")) - 1;
    shared.rounds = std::max(shared.rounds, op.round().number() + 1);
  }
  return shared;
}

}  // namespace

std::string ExpertsText(const Plan& plan, const std::string& indent) {
  for (const UnitTable& table : plan.tables()) {
    const SharedExperts shared = SharedIn(table);
    if (shared.ranks == 0) continue;
    return absl::StrCat(
        "  experts          ", shared.experts / shared.ranks, " of ",
        shared.experts, " on each of the ", shared.ranks, " ranks along ",
        shared.axes, "\n", indent,
        "predicted with an even load; at worst one rank gets all rows, ",
        shared.ranks, " times as many, in ", shared.rounds,
        shared.rounds == 1 ? " round" : " rounds", "\n");
  }
  return "";
}

}  // namespace troupe
