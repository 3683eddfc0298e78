// WEIGHT: the weights of a LINEAR as a tensor, so that ranks can exchange it,
// where the product is made in panels (product.cc).
//
//   outputs     y  the weight, as it lies: [in, out], or [out, in] with several
//                  weights below one another
//   parameters  the weights
//
// It is not kept for backward, but made again: a copy.
#include "proto/plan/ops/kinds.h"
#include "proto/plan/precision.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> WeightOperands() {
  return {{.name = "y", .output = true, .dims = 2}};
}

OpRules WeightRules(const OpView& op) {
  const double bytes = Bytes(op.output("y"));
  OpRules rules;
  rules.forward.set_memory_bytes(2 * bytes);
  rules.backward_weight.set_memory_bytes(3 * bytes);
  // Its gradient in f32, as one row.
  rules.gpu_scratch_bytes = ElementsOf(op.output("y")) * BytesOfElement(F32);
  return rules;
}

// Where its gradient is a summand, the parameters' are, too.
OpCut WeightCut(const OpView& op, const Wishes& wishes) {
  OpCut cut = CutAlike(op, wishes);
  cut.sums_parameters = cut.outputs[0].gradient.placement == Layout::PARTIAL;
  return cut;
}

}  // namespace troupe
