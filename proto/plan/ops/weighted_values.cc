// WEIGHTED_VALUES: values of the rank `hop` places before this one, weighted by
// their columns of the probabilities, added to what others' have made (Sequence
// Parallelism, arXiv 2105.13120).
//
//   inputs   p         [batch, heads, sequence, keys]
//            v         [batch, sequence, key-value heads]
//            y before  optional: y of the hop before, where y lies
//   outputs  y         [batch, sequence, heads]
//            p after   optional: p, for the hop behind. Backward each hop makes
//                      its columns of p's gradient, beside those behind it
#include "proto/plan/ops/kinds.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> WeightedValuesOperands() {
  return {{.name = "p", .dims = 4},
          {.name = "v", .dims = 3, .sections = 1},
          {.name = "y before", .optional = true, .dims = 3},
          {.name = "y", .output = true, .dims = 3},
          {.name = "p after", .output = true, .optional = true, .dims = 4}};
}

OpRules WeightedValuesRules(const OpView& op) {
  OpRules rules;
  if (op.HasInput("y before")) {
    rules.in_place = {{"y", "y before"}};
    rules.gradients = {{"y before", InputGradient::kOfOutput, "y"}};
  }
  if (op.HasOutput("p after")) {
    rules.in_place.push_back({.output = "p after", .input = "p", .same = true});
    rules.gradients.push_back({"p", InputGradient::kInPlace, "p after"});
  } else {
    rules.gradients.push_back({"p", InputGradient::kNew});
  }
  rules.gradients.push_back({"v", InputGradient::kNew});
  rules.backward_input_reads = {"p", "v"};
  const double keys = static_cast<double>(DimSize(op.input("v").dims(1)));
  const double product = 2 * Elements(op.output("y")) * keys;
  rules.forward.set_matmul_flops(product);
  rules.backward_input.set_matmul_flops(2 * product);
  const TensorSpec& queries = op.output("y");
  const Dim::Section& heads = queries.dims(2).sections(0);
  rules.products = ProductsOfHeads(
      {.makes_scores = false,
       .rows = DimSize(queries.dims(1)),
       .keys = DimSize(op.input("v").dims(1)),
       .width = heads.width(),
       .times = static_cast<double>(DimSize(queries.dims(0)) * heads.count())});
  return rules;
}

}  // namespace troupe
