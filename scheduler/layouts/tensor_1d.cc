// Tensor parallelism in one dimension (Megatron-LM, arXiv 1909.08053): a rank
// has some of the heads, of the MLP's intermediate columns and of the
// vocabulary. What leads to them is a product cut by columns, what leads back
// one cut by rows, so that a block exchanges twice forward, [tokens, hidden]
// summed, and twice backward.
#include "proto/plan/axes.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

std::vector<DimRule> RulesOfInnerColumns() {
  return {{.kind = Dim::HEADS, .field = "model.num_attention_heads"},
          {.kind = Dim::KEY_VALUE_HEADS,
           .field = "model.num_key_value_heads",
           .shares = true},
          {.kind = Dim::INTERMEDIATE, .field = "model.intermediate_size"},
          {.kind = Dim::VOCABULARY, .field = "model.vocab_size", .pads = true}};
}

LayoutRow Tensor1D() {
  return {
      .name = "tensor_1d",
      .axis = "tensor",
      .used =
          [](const ParallelismSpec& p) { return SizeOfAxis(p, "tensor") > 1; },
      .rules = RulesOfInnerColumns()};
}

}  // namespace troupe
