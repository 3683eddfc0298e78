// PACK: the blocks of a tensor that go to the ranks of an exchange, which lie
// behind one another then; UNPACK puts such blocks together. A dim is cut into
// blocks as it is over ranks (proto/plan/slices.h): where a section has fewer
// than there are blocks, neighbours have the same one, and its gradient is the
// sum of theirs.
//
//   inputs   x  [batch, ...]                PACK; UNPACK's y
//   outputs  y  [blocks x batch, ...], its dim `pack.dim` a block's
#include "proto/plan/ops/kinds.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// Rows of one sample are in their order already.
bool IsInOrder(const TensorSpec& whole, int dim) {
  int64_t before = 1;
  for (int d = 0; d < dim; ++d) before *= DimSize(whole.dims(d));
  return before == 1 && whole.dims(dim).sections_size() == 1;
}

OpRules Rules(const OpView& op, const TensorSpec& whole) {
  OpRules rules;
  if (IsInOrder(whole, op.op().pack().dim())) {
    rules.in_place = {{.output = "y", .input = "x", .same = true}};
    rules.gradients = {{"x", InputGradient::kOfOutput, "y"}};
    return rules;
  }
  rules.gradients = {{"x", InputGradient::kNew}};
  const double bytes = Bytes(op.input("x")) + Bytes(op.output("y"));
  rules.forward.set_memory_bytes(bytes);
  rules.backward_input.set_memory_bytes(bytes);
  return rules;
}

}  // namespace

std::vector<OperandRule> PackOperands() {
  return {{.name = "x", .dims = 3}, {.name = "y", .output = true, .dims = 3}};
}

OpRules PackRules(const OpView& op) { return Rules(op, op.input("x")); }

OpRules UnpackRules(const OpView& op) { return Rules(op, op.output("y")); }

}  // namespace troupe
