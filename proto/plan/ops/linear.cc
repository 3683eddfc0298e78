// LINEAR: y = x W + b. Several weights make a section of columns each. Cut over
// ranks by columns, each needs all of x and has a summand of its gradient; cut
// by rows, each has a summand of y, to which the first one adds the bias (arXiv
// 1909.08053, section 3).
//
// Where a LOW_RANK behind it adapts it, the gradient of x is the sum of both.
//
// Of a chunk (Op.chunk) it multiplies some rows of x, and makes the gradient of
// these.
//
//   inputs      x  [..., in]
//   outputs     y  [..., out]
//   parameters  the weights, then, with `bias`, their biases
#include <algorithm>

#include "proto/plan/ops/gpu_scratch.h"
#include "proto/plan/ops/kinds.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> LinearOperands() {
  return {{.name = "x"}, {.name = "y", .output = true}};
}

namespace {

// Each weight makes a section of columns.
void AddLinearProducts(const OpView& op, PassProducts& products) {
  const TensorSpec& x = op.input("x");
  const TensorSpec& y = op.output("y");
  const Dim& columns = y.dims(y.dims_size() - 1);
  const int weights = WeightCount(op.op());
  for (int w = 0; w < weights; ++w) {
    const Dim::Section& section = columns.sections(w % columns.sections_size());
    AddWeightProduct(
        {.in = ColumnsOf(x),
         .out = weights == 1 ? ColumnsOf(y) : section.count() * section.width(),
         .in_out = op.op().linear().in_out(),
         .rows = op.op().has_chunk() ? op.op().chunk().rows()
                                     : MultipliedRows(x)},
        Trains(op.op(), w), products);
  }
}

// The share of y's columns whose weights are trained, and whether any bias is.
double TrainedShare(const OpView& op) {
  const TensorSpec& y = op.output("y");
  const Dim& columns = y.dims(y.dims_size() - 1);
  const int weights = WeightCount(op.op());
  if (weights != columns.sections_size()) {
    return weights == 1 && !Trains(op.op(), 0) ? 0 : 1;
  }
  double trained = 0;
  for (int i = 0; i < weights; ++i) {
    const Dim::Section& section = columns.sections(i);
    if (Trains(op.op(), i)) {
      trained += static_cast<double>(section.count() * section.width());
    }
  }
  return trained / Columns(y);
}

bool TrainsBias(const OpView& op) {
  for (int i = WeightCount(op.op()); i < op.op().parameters_size(); ++i) {
    if (Trains(op.op(), i)) return true;
  }
  return false;
}

}  // namespace

OpRules LinearRules(const OpView& op) {
  const TensorSpec& x = op.input("x");
  const TensorSpec& y = op.output("y");
  const bool of_chunk = op.op().has_chunk();
  const double rows = of_chunk ? Rows(y) : Rows(x);
  const double flops = 2.0 * rows * Columns(x) * Columns(y);
  OpRules rules;
  rules.gradients = {{"x", of_chunk ? InputGradient::kInParts
                           : op.op().linear().adapted()
                               ? InputGradient::kNewSum
                               : InputGradient::kNew}};
  const double trained = TrainedShare(op);
  if (trained > 0) rules.backward_weight_reads = {"x"};
  rules.forward.set_matmul_flops(flops);
  rules.backward_input.set_matmul_flops(flops);
  rules.backward_weight.set_matmul_flops(trained * flops);
  if (TrainsBias(op)) {
    rules.backward_weight.set_memory_bytes(Bytes(y));
  }
  rules.takes_in_fused = true;
  AddLinearProducts(op, rules.products);
  rules.gpu_scratch_bytes = GpuProductScratchBytes(op);
  if (trained > 0) {
    rules.gpu_narrow_gradient_bytes = GpuNarrowGradientBytes(
        {.in = ColumnsOf(x),
         .out = ColumnsOf(y),
         .rows = RowsOf(y),
         .row_stride = std::max(RowStrideOf(x), RowStrideOf(y))});
  }
  return rules;
}

OpCut LinearCut(const OpView& op, const Wishes& wishes) {
  constexpr AxisCut kWhole;
  constexpr AxisCut kSummand = {.placement = Layout::PARTIAL};
  const AxisCut& x = wishes.tensors[op.Input("x")];
  const AxisCut& y = wishes.tensors[op.Output("y")];
  const bool by_rows = CutsColumns(op.input("x"), x);
  const bool by_columns = CutsColumns(op.output("y"), y);
  // Where both sides could be, ranks gather x.
  if (by_columns) {
    return {.inputs = {{kWhole, kSummand}}, .outputs = {{y, y}}};
  }
  if (by_rows) {
    return {.inputs = {{x, x}}, .outputs = {{kSummand, kWhole}}};
  }
  return {.inputs = {{x, x}},
          .outputs = {{y, y}},
          .sums_parameters = y.placement == Layout::SHARD};
}

}  // namespace troupe
