#include "scheduler/planner/resolve_lora.h"

#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/lora.h"
#include "proto/plan/model.h"

namespace troupe {
namespace {

// PEFT's defaults.
constexpr int kRank = 8;
constexpr double kAlpha = 8;

constexpr int kRankMax = 1 << 16;

}  // namespace

absl::Status ResolveLora(JobSpec& job) {
  if (!job.training().has_lora()) return absl::OkStatus();
  if (IsSynthetic(job.model())) {
    return FieldError("training.lora",
                      "synthetic units have no linear layers; leave it out");
  }
  if (job.model().num_nextn_predict_layers() > 0) {
    return FieldError("training.lora",
                      "adapters are of the layers that transformers has, and "
                      "it has no modules that predict further tokens; leave "
                      "out model.num_nextn_predict_layers");
  }
  LoraSpec& lora = *job.mutable_training()->mutable_lora();
  if (!lora.has_rank()) lora.set_rank(kRank);
  if (!lora.has_alpha()) lora.set_alpha(kAlpha);
  if (!lora.has_dropout()) lora.set_dropout(0);
  if (!lora.has_rank_stabilized()) lora.set_rank_stabilized(false);
  if (lora.modules().empty()) lora.add_modules(kAllLinear);
  RETURN_IF_ERROR(CheckInteger("training.lora.rank", lora.rank(),
                               {.min = 1, .max = kRankMax}));
  RETURN_IF_ERROR(CheckNumber("training.lora.alpha", lora.alpha(),
                              {.min = 0, .max = 1e6, .min_open = true}));
  return CheckNumber("training.lora.dropout", lora.dropout(),
                     {.min = 0, .max = 1, .max_open = true});
}

}  // namespace troupe
