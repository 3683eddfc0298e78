// Mixtral (Jiang et al., arXiv 2401.04088): Mistral's block, whose feed-forward
// part is a mixture of experts. The gates of a token's experts add up to 1.
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/architectures/experts_section.h"
#include "proto/plan/architectures/llama_family.h"

namespace troupe {
namespace {

absl::optional<ExpertsSection> ExpertsOf(const ModelSpec& model,
                                         int64_t layer) {
  const std::string at =
      absl::StrCat("model.layers.", layer, ".block_sparse_moe.");
  return ExpertsSection{.router = at + "gate",
                        .gate = at + "experts.*.w1",
                        .up = at + "experts.*.w3",
                        .down = at + "experts.*.w2",
                        .experts = model.num_experts(),
                        .choices = model.num_experts_per_tok(),
                        .intermediate = model.intermediate_size(),
                        .renormalise = true,
                        .init_std = model.initializer_range()};
}

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  return LlamaUnits(model, shape, {.experts = ExpertsOf});
}

absl::Status Check(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckExperts(model));
  return CheckLlama(model);
}

absl::Status Resolve(ModelSpec& model) {
  constexpr int kExperts = 8;
  constexpr int kChoices = 2;
  if (!model.has_num_experts()) model.set_num_experts(kExperts);
  if (!model.has_num_experts_per_tok()) {
    model.set_num_experts_per_tok(kChoices);
  }
  SetExpertsDefaults(model);
  RETURN_IF_ERROR(SetLlamaDefaults(model));
  return Check(model);
}

}  // namespace

Architecture Mixtral() {
  return {
      .name = "mixtral",
      .fields = LlamaFields({"num_experts", "num_experts_per_tok", "experts"}),
      .resolve = Resolve,
      .check = Check,
      .units = Units};
}

}  // namespace troupe
