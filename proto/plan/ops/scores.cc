// SCORES: products of the rank's queries with the keys of the rank `hop` places
// before it, beside those with the keys of others (Sequence Parallelism, arXiv
// 2105.13120): columns of whole rows of scores.
//
//   inputs   q         [batch, sequence, heads]
//            k         [batch, sequence, key-value heads]
//            y before  optional: y of the hop before, where y lies
//   outputs  y         [batch, heads, sequence, keys]
#include "proto/plan/ops/kinds.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> ScoresOperands() {
  return {{.name = "q", .dims = 3, .sections = 1},
          {.name = "k", .dims = 3, .sections = 1},
          {.name = "y before", .optional = true, .dims = 4},
          {.name = "y", .output = true, .dims = 4}};
}

OpRules ScoresRules(const OpView& op) {
  OpRules rules;
  if (op.HasInput("y before")) {
    rules.in_place = {{"y", "y before"}};
    rules.gradients = {{"y before", InputGradient::kOfOutput, "y"}};
  }
  rules.gradients.push_back({"q", InputGradient::kNewSum});
  rules.gradients.push_back({"k", InputGradient::kNew});
  rules.backward_input_reads = {"q", "k"};
  const double keys = static_cast<double>(DimSize(op.input("k").dims(1)));
  const double product = 2 * Elements(op.input("q")) * keys;
  rules.forward.set_matmul_flops(product);
  rules.backward_input.set_matmul_flops(2 * product);
  const TensorSpec& queries = op.input("q");
  const Dim::Section& heads = queries.dims(2).sections(0);
  rules.products = ProductsOfHeads(
      {.makes_scores = true,
       .rows = DimSize(queries.dims(1)),
       .keys = DimSize(op.input("k").dims(1)),
       .width = heads.width(),
       .times = static_cast<double>(DimSize(queries.dims(0)) * heads.count())});
  return rules;
}

}  // namespace troupe
