// DISPATCH: a row for each choice of each token, sorted by expert
// (ops/permute.h), and each row's gate.
//
//   inputs   x        [batch, sequence, hidden]
//            choices  [batch, sequence, choices], i32
//            gates    [batch, sequence, choices], f32
//   outputs  rows     [batch, sequence, choices, hidden]: as many rows as there
//                     are choices, expert by expert
//            row_gates [batch, sequence, choices], f32, in the order of rows
//            sources  [batch, sequence, choices], i32: which choice each row is
//            places   [batch, sequence, choices], i32: which row each choice is
//            offsets  [experts + 1], i32: the first row of each expert
//
// Axes that cut batch or sequence cut the rows, too: a rank has those of its
// own tokens. Where an axis cuts the experts' columns, each rank has a summand
// of what comes back of rows and gates.
#include <algorithm>

#include "proto/plan/ops/gpu_scratch.h"
#include "proto/plan/ops/kinds.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> DispatchOperands() {
  return {{.name = "x", .dims = 3},
          {.name = "choices", .dims = 3},
          {.name = "gates", .dims = 3},
          {.name = "rows", .output = true, .dims = 4},
          {.name = "row_gates", .output = true, .dims = 3},
          {.name = "sources", .output = true, .dims = 3},
          {.name = "places", .output = true, .dims = 3},
          {.name = "offsets", .output = true, .dims = 1}};
}

OpRules DispatchRules(const OpView& op) {
  const double rows = Bytes(op.output("rows"));
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNew},
                     {"gates", InputGradient::kNew}};
  rules.backward_input_reads = {"places"};
  rules.gpu_scratch_bytes = ElementsOf(op.input("choices")) * kGpuSortBytes;
  rules.forward.set_memory_bytes(2.0 * rows);
  rules.backward_input.set_memory_bytes(rows + Bytes(op.input("x")));
  return rules;
}

OpCut DispatchCut(const OpView& op, const Wishes& wishes) {
  if (!CutsWithinExperts(wishes)) return CutAlike(op, wishes);
  constexpr TensorCut kSummed = {.value = {},
                                 .gradient = {.placement = Layout::PARTIAL}};
  OpCut cut;
  for (const Op::Operand& input : op.op().inputs()) {
    cut.inputs.push_back(input.name() == "choices" ? TensorCut() : kSummed);
  }
  for (const Op::Operand& output : op.op().outputs()) {
    const bool goes_back =
        output.name() == "rows" || output.name() == "row_gates";
    cut.outputs.push_back(goes_back ? kSummed : TensorCut());
  }
  return cut;
}

}  // namespace troupe
