#include "scheduler/layouts/share_room.h"

#include <algorithm>
#include <string>

#include "proto/base/check.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/layouts/table_writer.h"

namespace troupe {
namespace {

// Axes that cut sequences, outermost first, and how many ranks are along them.
struct Sharers {
  std::vector<std::string> axes;
  int64_t ranks = 1;
};

Sharers SharersOf(const TensorSpec& choices,
                  const std::vector<AxisRules>& rules) {
  Sharers sharers;
  for (const auto& cut : choices.dims(1).sections(0).cuts()) {
    CHECK(!cut.zigzag()) << choices.name() << " are no consecutive positions";
    const auto along = std::find_if(
        rules.begin(), rules.end(),
        [&cut](const AxisRules& axis) { return axis.axis == cut.axis(); });
    CHECK(along != rules.end()) << cut.axis() << " cuts " << choices.name();
    sharers.axes.push_back(cut.axis());
    sharers.ranks *= along->size;
  }
  return sharers;
}

void SetDims(const std::vector<Dim>& dims, TensorSpec& spec) {
  spec.clear_dims();
  for (const Dim& dim : dims) *spec.add_dims() = dim;
  spec.clear_layout();
  spec.clear_gradient_layout();
  spec.clear_row_alignment();
  spec.set_dtype(F32);
}

// In front of a CAPACITY of these.
void Share(const Sharers& sharers, const Op& capacity, UnitTable& table) {
  const int choices = OpView(table, capacity).Input("choices");
  TableWriter writer(capacity, table);
  const int own = writer.NewTensor(choices, "counts of own tokens");
  const int all = writer.NewTensor(choices, "counts of all ranks");
  const Dim batch = table.tensors(choices).dims(0);
  const Dim by_choice = table.tensors(choices).dims(2);
  const Dim experts = DimOf({{Dim::STATISTICS, capacity.capacity().experts()}});
  SetDims({batch, by_choice, experts}, writer.tensor(own));
  SetDims(
      {DimOf({{Dim::STATISTICS, sharers.ranks}}), batch, by_choice, experts},
      writer.tensor(all));
  writer.AddOp(Op::ROUTER_LOAD, {{"choices", choices}}, {{"load", own}});
  writer.Gather(sharers.axes, own, all);
  Op shared = capacity;
  *shared.add_inputs() = TableWriter::OperandOf("counts", all);
  *table.add_ops() = shared;
}

}  // namespace

void ShareRoom(const std::vector<AxisRules>& axes, UnitTable& table) {
  ReplaceOps(
      Op::CAPACITY,
      [&axes](const Op& capacity, UnitTable& table) {
        const int choices = OpView(table, capacity).Input("choices");
        const Sharers sharers = SharersOf(table.tensors(choices), axes);
        if (sharers.axes.empty()) {
          *table.add_ops() = capacity;
        } else {
          Share(sharers, capacity, table);
        }
      },
      table);
}

}  // namespace troupe
