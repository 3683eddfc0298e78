// EMBED: rows of a token table, with those of a position table added where the
// op has two parameters. Where ranks have some rows of the token table each, a
// rank's y lacks the tokens of the others, and the first one adds positions.
//
//   inputs   tokens     [batch, sequence], i32
//            documents  optional: [batch, keys], i32, from where in its
//            sequence
//                       the positions of each token count
//   outputs  y          [batch, sequence, hidden]
#include <algorithm>

#include "proto/base/gpu_limits.h"
#include "proto/plan/ops/gpu_scratch.h"
#include "proto/plan/ops/kinds.h"
#include "proto/plan/precision.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

std::vector<OperandRule> EmbedOperands() {
  return {{.name = "tokens", .dims = 2},
          {.name = "documents", .optional = true, .dims = 2},
          {.name = "y", .output = true, .dims = 3}};
}

namespace {

// Tokens are sorted; of each piece there are two sums in f32, one of which its
// run may begin in.
int64_t SortScratchBytes(const OpView& op) {
  const int64_t tokens = ElementsOf(op.input("tokens"));
  const int64_t pieces =
      (tokens + kGpuEmbeddingPieceRows - 1) / kGpuEmbeddingPieceRows;
  return tokens * kGpuSortBytes +
         2 * pieces * ColumnsOf(op.output("y")) * BytesOfElement(F32);
}

}  // namespace

OpRules EmbedRules(const OpView& op) {
  const TensorSpec& y = op.output("y");
  const double tables = op.op().parameters_size();
  double trained = 0;
  for (int i = 0; i < op.op().parameters_size(); ++i) {
    if (Trains(op.op(), i)) trained += 1;
  }
  const double f32_bytes = static_cast<double>(BytesOfElement(F32));
  OpRules rules;
  rules.backward_weight_reads = {"tokens"};
  if (op.HasInput("documents")) {
    rules.backward_weight_reads.push_back("documents");
  }
  rules.model_flops = 0;
  rules.batch_rows = "y";
  rules.forward.set_memory_bytes((tables + 1.0) * Bytes(y));
  // Adds to rows of the tables' gradients.
  rules.backward_weight.set_memory_bytes(
      Bytes(y) + trained * 2.0 * Elements(y) * f32_bytes);
  rules.gpu_scratch_bytes = SortScratchBytes(op);
  return rules;
}

OpCut EmbedCut(const OpView& op, const Wishes& wishes) {
  const auto& kinds = wishes.kinds;
  if (std::count(kinds.begin(), kinds.end(), Dim::VOCABULARY) == 0) {
    return CutAlike(op, wishes);
  }
  const AxisCut whole;
  const AxisCut summand = {.placement = Layout::PARTIAL};
  return {.inputs = std::vector<TensorCut>(op.op().inputs_size()),
          .outputs = {{summand, whole}}};
}

}  // namespace troupe
