// Qwen 2 and 2.5 (arXiv 2407.10671): the family's block, with biases of
// queries, keys and values only.
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/architectures/llama_family.h"

namespace troupe {
namespace {

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  return LlamaUnits(model, shape, {.qkv_bias = true});
}

absl::Status Resolve(ModelSpec& model) {
  RETURN_IF_ERROR(SetLlamaDefaults(model));
  return CheckLlama(model);
}

}  // namespace

Architecture Qwen2() {
  return {.name = "qwen2",
          .fields = LlamaFields({}),
          .resolve = Resolve,
          .check = CheckLlama,
          .units = Units};
}

}  // namespace troupe
