// PRODUCT: one of the calls that LINEAR becomes where columns of both sides of
// a product are cut over ranks (SUMMA, van de Geijn and Watts, 1997; Optimus,
// arXiv 2104.05343): a panel of columns of x, times the rows of the weight that
// go with them. The calls of all panels add up.
//
//   inputs      x         [..., in], one place's on the axis that cuts columns
//               w         the WEIGHT's, that place's on the axis that cuts rows
//               y before  optional: y of the call before, where y lies
//   outputs     y         [..., out]
//   parameters  with `linear.bias`, the biases: of the first call
//   panel       whose columns and rows
//
// The gradients of x and w are summands of that place's, which it has of all
// ranks along the one axis, and along the other.
#include <algorithm>

#include "proto/plan/ops/gpu_scratch.h"
#include "proto/plan/ops/kinds.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> ProductOperands() {
  return {{.name = "x", .dims = 3},
          {.name = "w", .dims = 2},
          {.name = "y before", .optional = true, .dims = 3},
          {.name = "y", .output = true, .dims = 3}};
}

namespace {

// The weight's gradient is a tensor's, made with x's.
PassProducts ProductsOf(const OpView& op, bool of_w) {
  PassProducts products;
  AddWeightProduct({.in = ColumnsOf(op.input("x")),
                    .out = ColumnsOf(op.output("y")),
                    .in_out = op.op().linear().in_out(),
                    .rows = RowsOf(op.input("x"))},
                   of_w, products);
  auto& backward = products.backward_input;
  auto& weight = products.backward_weight;
  backward.insert(backward.end(), weight.begin(), weight.end());
  weight.clear();
  return products;
}

}  // namespace

OpRules ProductRules(const OpView& op) {
  const TensorSpec& x = op.input("x");
  const TensorSpec& y = op.output("y");
  const double flops = 2.0 * Elements(x) * Columns(y);
  OpRules rules;
  if (op.HasInput("y before")) {
    rules.in_place = {{"y", "y before"}};
    rules.gradients = {{"y before", InputGradient::kOfOutput, "y"}};
  }
  rules.gradients.push_back({"x", InputGradient::kNew});
  rules.gradients.push_back({"w", InputGradient::kNew});
  const bool of_x = !x.no_gradient();
  const bool of_w = !op.input("w").no_gradient();
  if (of_w) rules.backward_input_reads.push_back("x");
  if (of_x) rules.backward_input_reads.push_back("w");
  rules.forward.set_matmul_flops(flops);
  rules.backward_input.set_matmul_flops((of_x ? flops : 0) +
                                        (of_w ? flops : 0));
  if (TrainsAny(op.op())) {
    rules.backward_weight.set_memory_bytes(Bytes(y));
  }
  rules.in_panels = true;
  rules.products = ProductsOf(op, of_w);
  rules.gpu_scratch_bytes = GpuProductScratchBytes(op);
  if (of_w && op.input("w").dtype() != F32) {
    rules.gpu_scratch_bytes =
        std::max(rules.gpu_scratch_bytes,
                 GpuNarrowGradientBytes(
                     {.in = ColumnsOf(x),
                      .out = ColumnsOf(y),
                      .rows = RowsOf(y),
                      .row_stride = std::max(RowStrideOf(x), RowStrideOf(y))}));
  }
  return rules;
}

OpCut ProductCut(const OpView& op, const Wishes& wishes) {
  const int panel = op.op().panel();
  const int inner = op.op().linear().in_out() ? 0 : 1;  // dim of w
  const AxisCut& w = wishes.tensors[op.Input("w")];
  const AxisCut& y = wishes.tensors[op.Output("y")];
  const auto panel_of = [panel](int dim) -> TensorCut {
    return {{.placement = Layout::SHARD, .dim = dim, .panel = panel},
            {.placement = Layout::PARTIAL, .dim = dim, .panel = panel}};
  };
  // Of rows, each of x makes one of y, and a summand of w's gradient.
  TensorCut of_x = {y, y};
  TensorCut of_w = {w, w};
  if (w.placement == Layout::SHARD) {
    if (w.dim == inner) {
      of_w = panel_of(inner);
    } else {
      of_x = panel_of(op.input("x").dims_size() - 1);
    }
  } else if (y.placement == Layout::SHARD) {
    of_w.gradient = {.placement = Layout::PARTIAL};
  }
  OpCut cut = {.inputs = {of_x, of_w},
               .outputs = {{y, y}},
               .sums_parameters = y.placement == Layout::SHARD};
  if (op.HasInput("y before")) cut.inputs.push_back({y, y});
  return cut;
}

}  // namespace troupe
