// Qwen 3 with experts (arXiv 2505.09388): Qwen 3's block; the feed-forward part
// of most layers is a mixture of experts.
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/architectures/llama_family.h"
#include "proto/plan/architectures/qwen_moe.h"

namespace troupe {
namespace {

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  return LlamaUnits(model, shape,
                    {.head_norms = true, .experts = QwenExpertsOf});
}

absl::Status Resolve(ModelSpec& model) {
  return ResolveQwenMoe({.experts = 128, .choices = 8, .intermediate = 768},
                        model);
}

}  // namespace

Architecture Qwen3Moe() {
  return {.name = "qwen3_moe",
          .fields = QwenMoeFields(),
          .resolve = Resolve,
          .check = CheckQwenMoe,
          .units = Units};
}

}  // namespace troupe
