// ATTENTION: multi-head causal self-attention by blocks (FlashAttention, arXiv
// 2205.14135). Keys and values may have fewer heads (arXiv 2305.13245).
//
//   inputs   qkv        [batch, sequence, heads | key-value heads | the same];
//                       heads of values may have another width
//            documents  optional: [batch, keys], i32, where in its sequence the
//                       document of each token begins, before which it sees
//                       nothing
//   outputs  y          [batch, sequence, heads], each as wide as one of values
//            logsumexp  [batch, heads, sequence], f32
//   mask     of the probabilities
//   softmax  the scale of the scores, where not 1 / sqrt(width of a key)
#include <algorithm>
#include <cmath>

#include "proto/base/gpu_limits.h"
#include "proto/plan/ops/gpu_scratch.h"
#include "proto/plan/ops/kinds.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> AttentionOperands() {
  return {{.name = "qkv", .dims = 3, .sections = 3},
          {.name = "documents", .optional = true, .dims = 2},
          {.name = "y", .output = true, .dims = 3},
          {.name = "logsumexp", .output = true, .dims = 3}};
}

namespace {

// cuDNN's kernels, which are asked in bf16 and fp16 where nothing is dropped
// out, take more than our own, in several calls where one would be past a
// bound, if any is not. A worker without cuDNN is counted as one with it: plans
// are the same for all.
int64_t GpuScratchBytes(const OpView& op) {
  const TensorSpec& y = op.output("y");
  const AttentionShape shape = *AttentionShapeOf(op);
  const int64_t own = GpuAttentionScratchBytes(op);
  if (y.dtype() == F32 || op.op().has_mask() || shape.length == 0) return own;
  const GpuAttentionShape call =
      GpuAttentionCall({.samples = RowsOf(y) / shape.length,
                        .heads = shape.heads,
                        .kv_heads = shape.kv_heads,
                        .q_length = shape.length,
                        .kv_length = shape.length,
                        .head_dim = shape.head_dim});
  return call.samples == 0 ? own : std::max(own, GpuAttentionWorkBytes(call));
}

}  // namespace

Work AttentionWork(double keys, double values, double seen, bool backward) {
  // Forward scores and their product with values; backward the scores again,
  // the gradients of queries and keys, and two products with values.
  Work work;
  work.set_attention_flops(backward ? (3.0 * keys + 2.0 * values) * seen
                                    : (keys + values) * seen);
  return work;
}

double AttentionScale(const OpView& op) {
  if (op.op().has_softmax()) return op.op().softmax().scale();
  const AttentionShape shape = *AttentionShapeOf(op);
  return 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
}

OpRules AttentionRules(const OpView& op) {
  OpRules rules;
  rules.batch_rows = "qkv";
  rules.gradients = {{"qkv", InputGradient::kNew}};
  rules.backward_input_reads = {"qkv", "y", "logsumexp"};
  if (op.HasInput("documents")) {
    rules.backward_input_reads.push_back("documents");
  }
  // Query t sees t + 1 keys, or fewer: how long documents are is not known
  // here.
  const double t = static_cast<double>(DimSize(op.output("y").dims(1)));
  const double keys =
      Rows(op.output("y")) *
      static_cast<double>(SectionSize(op.input("qkv").dims(2).sections(0)));
  const double values = Elements(op.output("y"));
  // Of queries and values with all positions of the sequence, whatever the mask
  // and the window leave out (arXiv 2204.02311, appendix B).
  const double queries =
      static_cast<double>(SectionSize(op.input("qkv").dims(2).sections(0)));
  rules.model_flops = 6.0 * (queries + Columns(op.output("y"))) * t;
  rules.forward = AttentionWork(keys, values, t + 1.0, /*backward=*/false);
  rules.backward_input =
      AttentionWork(keys, values, t + 1.0, /*backward=*/true);
  rules.gpu_scratch_bytes = GpuScratchBytes(op);
  return rules;
}

// A query needs the keys of its whole sequence: where that is cut, all operands
// are turned to whole sequences of some of the heads (arXiv 2309.14509), or, if
// the axis cuts no heads, the op becomes several (ATTENTION_PART).
OpCut AttentionCut(const OpView& op, const Wishes& wishes) {
  const AxisCut& qkv = wishes.tensors[op.Input("qkv")];
  const bool turns =
      std::count(wishes.kinds.begin(), wishes.kinds.end(), Dim::HEADS) > 0;
  if (qkv.placement != Layout::SHARD || CutsColumns(op.input("qkv"), qkv) ||
      !turns) {
    return CutAlike(op, wishes);
  }
  constexpr AxisCut kColumns = {.placement = Layout::SHARD, .dim = 2};
  constexpr AxisCut kHeads = {.placement = Layout::SHARD, .dim = 1};
  OpCut cut = CutAlike(op, wishes);
  cut.inputs[0] = {kColumns, kColumns};
  cut.outputs = {{kColumns, kColumns}, {kHeads, kHeads}};
  return cut;
}

}  // namespace troupe
