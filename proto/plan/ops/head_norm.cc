// HEAD_NORM: RMSNorm (arXiv 1910.07467) of each head of queries and of keys,
// over the columns of the head; values pass. One weight for all heads of
// queries and one for those of keys (Qwen 3, arXiv 2505.09388).
//
//   inputs      x           [batch, sequence, heads | key-value heads | the
//   same] outputs     y           the same
//               query_rstd  [batch, sequence, heads], f32: 1 / root mean square
//               key_rstd    [batch, sequence, key-value heads], f32
//   parameters  the weight of queries, then of keys, [width of a head]
#include "proto/plan/ops/gpu_scratch.h"
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> HeadNormOperands() {
  return {{.name = "x", .dims = 3, .sections = 3},
          {.name = "y", .output = true, .dims = 3, .sections = 3},
          {.name = "query_rstd", .output = true, .dims = 3},
          {.name = "key_rstd", .output = true, .dims = 3}};
}

OpRules HeadNormRules(const OpView& op) {
  const double bytes = Bytes(op.output("y"));
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNew}};
  rules.backward_input_reads = {"x", "query_rstd", "key_rstd"};
  rules.backward_weight_reads = rules.backward_input_reads;
  // x and y; backward reads x and y's gradient and writes x's.
  rules.forward.set_memory_bytes(2.0 * bytes);
  rules.backward_input.set_memory_bytes(3.0 * bytes);
  rules.backward_weight.set_memory_bytes(2.0 * bytes);
  // Of queries, then of keys.
  rules.gpu_scratch_bytes =
      GpuSumOfRowsBytes(op.output("y").dims(2).sections(0).width());
  return rules;
}

}  // namespace troupe
