// GROUPED_LINEAR: y = x W[e] of the rows of each expert e
// (ops/grouped_matmul.h). Several weights make a section of columns each. Cut
// over ranks by columns or by rows it is as a LINEAR.
//
//   inputs      x        [batch, sequence, choices, in], expert by expert
//               offsets  [experts + 1], i32: the first row of each expert
//   outputs     y        [batch, sequence, choices, out]
//   parameters  the weights, [experts, out, in]
#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/ops/kinds.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> GroupedLinearOperands() {
  return {{.name = "x", .dims = 4},
          {.name = "offsets", .dims = 1},
          {.name = "y", .output = true, .dims = 4}};
}

namespace {

// Each expert has its share of the rows.
void AddProducts(const OpView& op, PassProducts& products) {
  products.grouped = true;
  const TensorSpec& x = op.input("x");
  const int64_t rows = MultipliedRows(x);
  if (rows == 0) return;
  const int64_t experts = ColumnsOf(op.input("offsets")) - 1;
  const Dim& columns = op.output("y").dims(3);
  for (int w = 0; w < op.op().parameters_size(); ++w) {
    const Dim::Section& section = columns.sections(w % columns.sections_size());
    AddWeightProduct({.in = ColumnsOf(x),
                      .out = op.op().parameters_size() == 1
                                 ? DimSize(columns)
                                 : section.count() * section.width(),
                      .rows = std::max<int64_t>(1, rows / experts),
                      .times = static_cast<double>(experts)},
                     Trains(op.op(), w), products);
  }
}

}  // namespace

OpRules GroupedLinearRules(const OpView& op) {
  const TensorSpec& y = op.output("y");
  const double flops = 2.0 * Elements(op.input("x")) * Columns(y);
  double trained = 0;
  for (int i = 0; i < op.op().parameters_size(); ++i) {
    if (Trains(op.op(), i)) trained += 1.0 / op.op().parameters_size();
  }
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNew}};
  rules.backward_input_reads = {"offsets"};
  if (trained > 0) rules.backward_weight_reads = {"x", "offsets"};
  rules.forward.set_matmul_flops(flops);
  rules.backward_input.set_matmul_flops(flops);
  rules.backward_weight.set_matmul_flops(trained * flops);
  // A token goes through some of the experts only.
  const TensorSpec& x = op.input("x");
  const double tokens =
      static_cast<double>(DimSize(x.dims(0)) * DimSize(x.dims(1)));
  rules.model_flops = 3.0 * flops / tokens;
  rules.active_share = static_cast<double>(DimSize(x.dims(2))) /
                       (Columns(op.input("offsets")) - 1);
  AddProducts(op, rules.products);
  return rules;
}

OpCut GroupedLinearCut(const OpView& op, const Wishes& wishes) {
  constexpr TensorCut kWhole;
  constexpr AxisCut kSummand = {.placement = Layout::PARTIAL};
  const AxisCut& x = wishes.tensors[op.Input("x")];
  const AxisCut& y = wishes.tensors[op.Output("y")];
  const bool by_rows = CutsColumns(op.input("x"), x);
  const bool by_columns = CutsColumns(op.output("y"), y);
  CHECK(!by_rows || !by_columns) << "both sides of a product are cut";
  if (by_columns) {
    return {.inputs = {{.value = {}, .gradient = kSummand}, kWhole},
            .outputs = {{y, y}}};
  }
  if (by_rows) {
    return {.inputs = {{x, x}, kWhole},
            .outputs = {{.value = kSummand, .gradient = {}}}};
  }
  return {.inputs = {{x, x}, kWhole},
          .outputs = {{y, y}},
          .sums_parameters = y.placement == Layout::SHARD};
}

}  // namespace troupe
