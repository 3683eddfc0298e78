// NORM: y = norm(s), LayerNorm (arXiv 1607.06450) or RMSNorm (arXiv
// 1910.07467), of s = x, or of s = x + residual, which is an output then.
//
//   inputs      x, residual (optional)  [..., hidden]
//   outputs     y                       [..., hidden]
//               sum                     with a residual: s
//               mean                    [...], f32; LayerNorm only
//               rstd                    [...], f32: 1 / standard deviation, or
//                                       1 / root mean square
//   parameters  weight, and LayerNorm's bias
//
// The sum may lie where x did; from it the others can be made again. Of rows
// that are cut by columns every rank has the statistics (SPLIT_NORM).
#include "proto/plan/ops/gpu_scratch.h"
#include "proto/plan/ops/kinds.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> NormOperands() {
  return {{.name = "x"},
          {.name = "residual", .optional = true},
          {.name = "y", .output = true},
          {.name = "sum", .output = true, .optional = true},
          {.name = "mean", .output = true, .optional = true},
          {.name = "rstd", .output = true}};
}

OpRules NormRules(const OpView& op) {
  const double bytes = Bytes(op.output("y"));
  const bool residual = op.HasInput("residual");
  OpRules rules;
  // x and y; also the residual and the sum. Backward reads y's gradient and s
  // and writes x's; that of other readers of s is added.
  const bool added =
      op.IsReadElsewhere(residual ? op.Output("sum") : op.Input("x"));
  rules.forward.set_memory_bytes((residual ? 4.0 : 2.0) * bytes);
  rules.backward_input.set_memory_bytes((added ? 4.0 : 3.0) * bytes);
  rules.backward_weight.set_memory_bytes(2.0 * bytes);
  if (residual) {
    rules.gradients = {{"x", InputGradient::kNew},
                       {"residual", InputGradient::kOfInput, "x"}};
    rules.in_place = {{"sum", "x"}};
    rules.backward_input_reads = {"sum", "mean", "rstd"};
    rules.apart_reads = {"sum"};
    rules.apart.set_memory_bytes(2.0 * bytes);
  } else {
    rules.gradients = {{"x", InputGradient::kNewSum}};
    rules.backward_input_reads = {"x", "mean", "rstd"};
  }
  rules.backward_weight_reads = rules.backward_input_reads;
  // Scale and shift.
  rules.gpu_scratch_bytes = GpuSumOfRowsBytes(2 * ColumnsOf(op.output("y")));
  return rules;
}

OpCut NormCut(const OpView& op, const Wishes& wishes) {
  OpCut cut = CutAlike(op, wishes);
  if (!CutsColumns(op.output("y"), wishes.tensors[op.Output("y")])) return cut;
  for (int i = 0; i < op.op().outputs_size(); ++i) {
    const std::string& name = op.op().outputs(i).name();
    if (name == "mean" || name == "rstd") cut.outputs[i] = {};
  }
  return cut;
}

}  // namespace troupe
