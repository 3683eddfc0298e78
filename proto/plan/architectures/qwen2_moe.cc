// Qwen 2 with experts (arXiv 2407.10671, section 2.2.2; Qwen1.5-MoE): Qwen 2's
// block; beside the experts that it chooses, each token goes through a shared
// one, which the sigmoid of one more logit weighs.
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/architectures/llama_family.h"
#include "proto/plan/architectures/qwen_moe.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"

namespace troupe {
namespace {

absl::optional<ExpertsSection> ExpertsOf(const ModelSpec& model,
                                         int64_t layer) {
  absl::optional<ExpertsSection> section = QwenExpertsOf(model, layer);
  if (!section.has_value()) return section;
  const std::string at = absl::StrCat("model.layers.", layer, ".mlp.");
  section->shared = {.gate = at + "shared_expert.gate_proj",
                     .up = at + "shared_expert.up_proj",
                     .down = at + "shared_expert.down_proj",
                     .weight = at + "shared_expert_gate",
                     .intermediate = model.shared_expert_intermediate_size()};
  return section;
}

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  return LlamaUnits(model, shape, {.qkv_bias = true, .experts = ExpertsOf});
}

absl::Status Check(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckInteger("model.shared_expert_intermediate_size",
                               model.shared_expert_intermediate_size(),
                               {.min = 1, .max = 4 * kModelWidthMax}));
  return CheckQwenMoe(model);
}

absl::Status Resolve(ModelSpec& model) {
  constexpr int kShared = 5632;
  if (!model.has_shared_expert_intermediate_size()) {
    model.set_shared_expert_intermediate_size(kShared);
  }
  RETURN_IF_ERROR(ResolveQwenMoe(
      {.experts = 60, .choices = 4, .intermediate = 1408}, model));
  return Check(model);
}

}  // namespace

Architecture Qwen2Moe() {
  return {.name = "qwen2_moe",
          .fields = QwenMoeFields({"shared_expert_intermediate_size"}),
          .resolve = Resolve,
          .check = Check,
          .units = Units};
}

}  // namespace troupe
