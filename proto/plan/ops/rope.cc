// ROPE: queries and keys turned by their positions (RoFormer, arXiv
// 2104.09864): the sections of x's columns but the last; of each head
// two columns for each frequency, the first ones.
//
//   inputs   x          [batch, sequence, heads | key-value heads | the same]
//            documents  optional: [batch, keys], i32, from where in its
//            sequence
//                       the positions of each token count
//   outputs  y          as x
#include "proto/plan/ops/kinds.h"
#include "proto/plan/precision.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> RopeOperands() {
  return {{.name = "x", .dims = 3, .sections = 3},
          {.name = "documents", .optional = true, .dims = 2},
          {.name = "y", .output = true, .dims = 3, .sections = 3}};
}

OpRules RopeRules(const OpView& op) {
  const TensorSpec& x = op.input("x");
  const Dim& columns = x.dims(x.dims_size() - 1);
  double heads = 0;
  for (int i = 0; i + 1 < columns.sections_size(); ++i) {
    heads += static_cast<double>(columns.sections(i).count());
  }
  const double turned =
      2.0 * heads * op.op().rope().training().inverse_frequencies_size();
  OpRules rules;
  rules.batch_rows = "x";
  rules.gradients = {{"x", InputGradient::kInPlace, "y"}};
  rules.in_place = {{"y", "x"}};
  if (op.HasInput("documents")) rules.backward_input_reads = {"documents"};
  const double bytes =
      Rows(x) * turned * static_cast<double>(BytesOfElement(x.dtype()));
  rules.forward.set_memory_bytes(2.0 * bytes);
  rules.backward_input.set_memory_bytes(2.0 * bytes);
  return rules;
}

}  // namespace troupe
