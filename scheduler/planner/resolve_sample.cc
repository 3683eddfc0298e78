#include "scheduler/planner/resolve_sample.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/sharing.h"

namespace troupe {
namespace {

constexpr int kTokens = 64;
constexpr int kTokensMax = 1024;
constexpr double kTemperature = 0.8;
constexpr double kTemperatureMax = 100;
constexpr size_t kPromptBytesMax = 16384;
constexpr char kSampleField[] = "data.sample";

absl::Status ResolveFields(const ModelSpec& model, SampleSpec& sample) {
  RETURN_IF_ERROR(CheckPresent({.present = !sample.prompt().empty(),
                                .path = "data.sample.prompt",
                                .meaning = "the text to continue"}));
  if (sample.prompt().size() > kPromptBytesMax) {
    return FieldError("data.sample.prompt",
                      absl::StrCat("has ", sample.prompt().size(),
                                   " bytes; use at most ", kPromptBytesMax));
  }
  if (!sample.has_tokens()) sample.set_tokens(kTokens);
  if (!sample.has_temperature()) sample.set_temperature(kTemperature);
  if (!sample.has_seed()) sample.set_seed(0);
  RETURN_IF_ERROR(CheckInteger("data.sample.tokens", sample.tokens(),
                               {.min = 1, .max = kTokensMax}));
  RETURN_IF_ERROR(CheckNumber("data.sample.temperature", sample.temperature(),
                              {.min = 0, .max = kTemperatureMax}));
  const int64_t longest = LongestSequenceOf(model).positions;
  if (sample.tokens() < longest) return absl::OkStatus();
  return FieldError("data.sample.tokens",
                    absl::StrCat(sample.tokens(),
                                 " leave no room for a prompt: the model sees ",
                                 longest, " positions"));
}

// A field of parallelism by which a rank has less than the model.
absl::Status CheckSize(absl::string_view name, int size) {
  if (size <= 1) return absl::OkStatus();
  return FieldError(
      kSampleField,
      absl::StrCat("needs a rank that has the whole model, and ranks "
                   "share it by parallelism.",
                   name, ": ", size,
                   "; leave it out, and continue texts with `troupe "
                   "generate`"));
}

absl::Status CheckWholeModel(const ParallelismSpec& parallelism) {
  RETURN_IF_ERROR(CheckSize("pipeline", parallelism.pipeline()));
  RETURN_IF_ERROR(CheckSize("virtual_stages", parallelism.virtual_stages()));
  for (const RankField& field : RankFields()) {
    RETURN_IF_ERROR(CheckSize(field.name, RanksOf(parallelism, field.name)));
  }
  RETURN_IF_ERROR(CheckSize("strategies", 1 + parallelism.strategies_size()));
  if (parallelism.zero() < 3) return absl::OkStatus();
  return FieldError(kSampleField,
                    "needs a rank that has the whole model, and with "
                    "parallelism.zero: 3 ranks have slices of it; use zero 2, "
                    "or leave it out");
}

absl::Status CheckStateOnDevice(const MemorySpec& memory) {
  for (const auto& [name, tier] :
       {std::pair("parameters", memory.parameters()),
        std::pair("optimizer", memory.optimizer()),
        std::pair("gradients", memory.gradients()),
        std::pair("activations", memory.activations())}) {
    if (tier.empty() || tier == "device") continue;
    return FieldError(
        kSampleField,
        absl::StrCat("needs the state in the device's memory, and "
                     "memory.",
                     name, " is ", tier,
                     "; use device, or leave it "
                     "out"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveSample(JobSpec& job) {
  if (!job.data().has_sample()) return absl::OkStatus();
  if (IsSynthetic(job.model()) || IsGraph(job.model())) {
    return FieldError(
        kSampleField,
        absl::StrCat("a model of architecture ", job.model().architecture(),
                     " generates no text; leave it out"));
  }
  RETURN_IF_ERROR(
      ResolveFields(job.model(), *job.mutable_data()->mutable_sample()));
  if (job.training().validate_every() == 0) {
    return FieldError(kSampleField,
                      "is written after validations, and nothing is validated; "
                      "set training.validate_every");
  }
  if (job.training().precision() == "fp16") {
    return FieldError(kSampleField,
                      "text is computed in f32 or bf16, and "
                      "training.precision is fp16; use bf16, or leave it out");
  }
  return absl::OkStatus();
}

absl::Status CheckSample(const JobSpec& job) {
  if (!job.data().has_sample()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckWholeModel(job.parallelism()));
  return CheckStateOnDevice(job.memory());
}

}  // namespace troupe
