// Llama (Touvron et al., arXiv 2302.13971): the family's block, with biases
// where attention_bias or mlp_bias ask for them.
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/architectures/llama_family.h"

namespace troupe {
namespace {

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  return LlamaUnits(model, shape,
                    {.qkv_bias = model.attention_bias(),
                     .output_bias = model.attention_bias(),
                     .mlp_bias = model.mlp_bias()});
}

absl::Status Resolve(ModelSpec& model) {
  RETURN_IF_ERROR(SetLlamaDefaults(model));
  if (!model.has_attention_bias()) model.set_attention_bias(false);
  if (!model.has_mlp_bias()) model.set_mlp_bias(false);
  return CheckLlama(model);
}

}  // namespace

Architecture Llama() {
  return {.name = "llama",
          .fields = LlamaFields({"attention_bias", "mlp_bias"}),
          .resolve = Resolve,
          .check = CheckLlama,
          .units = Units};
}

}  // namespace troupe
