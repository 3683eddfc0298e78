// Qwen 3 (arXiv 2505.09388): the family's block, with norms of each head of
// queries and keys before they turn, and heads of 128 columns unless said
// otherwise.
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/architectures/llama_family.h"

namespace troupe {
namespace {

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  return LlamaUnits(model, shape, {.head_norms = true});
}

absl::Status Resolve(ModelSpec& model) {
  constexpr int kHeadDim = 128;
  if (!model.has_head_dim()) model.set_head_dim(kHeadDim);
  RETURN_IF_ERROR(SetLlamaDefaults(model));
  return CheckLlama(model);
}

}  // namespace

Architecture Qwen3() {
  return {.name = "qwen3",
          .fields = LlamaFields({}),
          .resolve = Resolve,
          .check = CheckLlama,
          .units = Units};
}

}  // namespace troupe
