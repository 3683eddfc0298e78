// Tensor parallelism in one dimension (Megatron-LM, arXiv 1909.08053): a rank
// has some of the heads, of the MLP's intermediate columns and of the
// vocabulary. What leads to them is a product cut by columns, what leads back
// one cut by rows, so that a block exchanges twice forward, [tokens, hidden]
// summed, and twice backward. Norms of all heads together become norms of cut
// rows, which exchange two numbers for each.
//
// With `sequence_parallel` (arXiv 2205.05198) what that leaves whole on every
// rank, norms, dropout and residuals, is cut by rows over the same ranks. Sums
// become reduce-scatters, with an all-gather in front of the next product: the
// same bytes, and activations a rank's share.
#include "scheduler/layouts/layouts.h"
#include "scheduler/layouts/split_norms.h"

namespace troupe {
namespace {

constexpr char kSequence[] = "sequence_parallel";

void TryWithSequences(const ParallelismSpec& parallelism,
                      std::vector<ParallelismSpec>& ways) {
  ways.push_back(parallelism);
  ways.push_back(parallelism);
  ways.back().set_sequence_parallel(true);
}

}  // namespace

std::vector<DimRule> RulesOfInnerColumns() {
  return {{.kind = Dim::HEADS, .field = "model.num_attention_heads"},
          {.kind = Dim::KEY_VALUE_HEADS,
           .field = "model.num_key_value_heads",
           .shares = true},
          {.kind = Dim::INTERMEDIATE, .field = "model.intermediate_size"},
          {.kind = Dim::VOCABULARY, .field = "model.vocab_size", .pads = true}};
}

LayoutRow Tensor1D() {
  std::vector<DimRule> rules = RulesOfInnerColumns();
  rules.push_back({.kind = Dim::SEQUENCE,
                   .field = "training.sequence_length",
                   .with = kSequence});
  return {.field = "tensor",
          .method = "1d",
          .implied = true,
          .fields = {kSequence},
          .axes = {{.name = "tensor",
                    .rules = rules,
                    .rewrite = SplitNorms,  // of queries and keys
                    .on_one_host = true}},
          .tries = TryWithSequences,
          .tried_beside = {"batch"},
          .fewer = DivisorsOf,
          .is_advised = true,
          .leaner = {.field = kSequence, .value = "true"}};
}

}  // namespace troupe
