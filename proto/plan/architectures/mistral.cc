// Mistral (Jiang et al., arXiv 2310.06825): the family's block, and a window of
// positions that attention sees. Sequences are no longer than the window
// (LongestSequenceOf), within which it changes nothing.
#include "proto/base/status.h"
#include "proto/plan/architectures/architecture.h"
#include "proto/plan/architectures/llama_family.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"

namespace troupe {
namespace {

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const MicroBatchShape& shape) {
  return LlamaUnits(model, shape, {});
}

absl::Status Check(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckLlama(model));
  if (!model.has_sliding_window()) return absl::OkStatus();
  return CheckInteger("model.sliding_window", model.sliding_window(),
                      {.min = 1, .max = kModelPositionsMax});
}

absl::Status Resolve(ModelSpec& model) {
  RETURN_IF_ERROR(SetLlamaDefaults(model));
  return Check(model);
}

}  // namespace

Architecture Mistral() {
  return {.name = "mistral",
          .fields = LlamaFields({"sliding_window"}),
          .resolve = Resolve,
          .check = Check,
          .units = Units};
}

}  // namespace troupe
