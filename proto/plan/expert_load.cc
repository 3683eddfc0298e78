#include "proto/plan/expert_load.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

constexpr char kField[] = "model.experts.measured";

// Of the layers of experts in a table, which are alike.
int64_t ExpertsIn(const UnitTable& table) {
  for (const Op& op : table.ops()) {
    if (op.kind() != Op::REGROUP) continue;
    return ColumnsOf(OpView(table, op).input("offsets")) - 1;
  }
  return 0;
}

absl::StatusOr<double> MeasuredOf(const ExpertsSpec& experts, int unit,
                                  const UnitTable& table) {
  const auto measured = std::find_if(
      experts.measured().begin(), experts.measured().end(),
      [unit](const MeasuredLoad& load) { return load.unit() == unit; });
  if (measured == experts.measured().end()) {
    return FieldError(
        kField, absl::StrCat("has no load of unit ", unit,
                             ", whose experts ranks share; use what a run of "
                             "the same model has measured"));
  }
  const int64_t count = ExpertsIn(table);
  if (measured->load_size() != count) {
    return FieldError(
        kField, absl::StrCat("has the load of ", measured->load_size(),
                             " experts of unit ", unit, ", which has ", count,
                             "; use what a run of the same model has "
                             "measured"));
  }
  return BusiestOverEven(measured->load(), RanksOfExperts(table));
}

}  // namespace

double BusiestOverEven(absl::Span<const double> load, int ranks) {
  CHECK(ranks > 0 && load.size() % ranks == 0)
      << ranks << " ranks share " << load.size() << " experts";
  const size_t of_rank = load.size() / ranks;
  double all = 0;
  double most = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const absl::Span<const double> own = load.subspan(rank * of_rank, of_rank);
    const double rows = std::accumulate(own.begin(), own.end(), 0.0);
    all += rows;
    most = std::max(most, rows);
  }
  CHECK_GT(all, 0) << "experts without any load";
  return most * ranks / all;
}

int RanksOfExperts(const UnitTable& table) {
  for (const Op& op : table.ops()) {
    if (op.kind() == Op::REGROUP) return op.round().ranks();
  }
  return 0;
}

void ExpectRows(double busiest_over_even, UnitTable& table) {
  int64_t rows = 0;             // that the busiest rank gets
  std::map<int, int> round_of;  // by tensor of a round
  for (const Op& op : table.ops()) {
    const OpView view(table, op);
    if (op.kind() == Op::DISPATCH) {
      const int64_t even = RowsOf(view.output("rows"));
      rows = std::llround(busiest_over_even * static_cast<double>(even));
    }
    absl::optional<int> round;
    if (op.has_round()) round = op.round().number();
    for (const Op::Operand& input : op.inputs()) {
      const auto made = round_of.find(input.tensor());
      if (made != round_of.end()) round = made->second;
    }
    if (!round.has_value()) continue;
    for (const Op::Operand& output : op.outputs()) {
      TensorSpec& tensor = *table.mutable_tensors(output.tensor());
      if (!tensor.has_expected_rows()) continue;
      round_of[output.tensor()] = *round;
      const int64_t room = RowsOf(tensor);
      tensor.set_expected_rows(
          std::clamp<int64_t>(rows - *round * room, 0, room));
    }
  }
}

absl::Status ExpectMeasuredLoad(Plan& plan) {
  const ExpertsSpec& experts = plan.job().model().experts();
  if (experts.load() != "measured") return absl::OkStatus();
  for (int t = 0; t < plan.tables_size(); ++t) {
    if (RanksOfExperts(plan.tables(t)) == 0) continue;
    double sum = 0;
    int layers = 0;
    for (int u = 0; u < plan.units_size(); ++u) {
      if (!plan.units(u).has_table() || plan.units(u).table() != t) continue;
      ASSIGN_OR_RETURN(const double over_even,
                       MeasuredOf(experts, u, plan.tables(t)));
      sum += over_even;
      ++layers;
    }
    if (layers > 0) ExpectRows(sum / layers, *plan.mutable_tables(t));
  }
  return absl::OkStatus();
}

}  // namespace troupe
