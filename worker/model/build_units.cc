#include "worker/model/build_units.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/precision.h"
#include "worker/model/gpt2_unit.h"
#include "worker/model/llama_unit.h"
#include "worker/model/synthetic_unit.h"
#include "worker/model/unit_options.h"

namespace troupe {
namespace {

struct Architecture {
  const char* name;
  absl::StatusOr<std::unique_ptr<ModelUnit>> (*new_unit)(
      const UnitOptions& options);
};

constexpr Architecture kArchitectures[] = {
    {"gpt2", NewGpt2Unit},
    {"llama", NewLlamaUnit},
    {"synthetic", NewSyntheticUnit},
};

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>> BuildUnits(
    const ModelSpec& model, const std::vector<Unit>& units,
    const BuildUnitsOptions& options) {
  for (const Architecture& architecture : kArchitectures) {
    if (model.architecture() != architecture.name) continue;
    std::vector<std::unique_ptr<ModelUnit>> built;
    for (size_t i = 0; i < units.size(); ++i) {
      UnitOptions unit_options = {
          .model = model,
          .unit = units[i],
          .input_bytes = i > 0 ? units[i - 1].activation_bytes() : 0,
          .build = options};
      if (units[i].tied_size() > 0) {
        const int tied = units[i].tied(0).unit();
        if (tied < 0 || tied >= static_cast<int>(units.size())) {
          return absl::InvalidArgumentError(
              absl::StrCat("unit ", i, " is tied to unit ", tied,
                           ", which the plan does not have"));
        }
        unit_options.tied_unit = units[tied];
      }
      auto unit = architecture.new_unit(unit_options);
      RETURN_IF_ERROR(Annotate(unit.status(), absl::StrCat("unit ", i)));
      built.push_back(std::move(*unit));
    }
    return built;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("model.architecture: this worker has no layers for '",
                   model.architecture(), "'"));
}

absl::StatusOr<std::vector<std::unique_ptr<ModelUnit>>> BuildUnits(
    const Plan& plan) {
  const JobSpec& job = plan.job();
  return BuildUnits(
      job.model(), {plan.units().begin(), plan.units().end()},
      {.shape = {.sequences = job.training().micro_batch_size(),
                 .sequence_length = job.training().sequence_length(),
                 .dtype = ComputeType(job.training())},
       .dropout = job.training().dropout(),
       .seed = job.training().seed()});
}

}  // namespace troupe
