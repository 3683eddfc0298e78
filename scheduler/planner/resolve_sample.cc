#include "scheduler/planner/resolve_sample.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model.h"
#include "proto/plan/model_fields.h"
#include "scheduler/layouts/layouts.h"

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

absl::Status RefuseSampleWith(absl::string_view field, absl::string_view why) {
  return FieldError(
      kSampleField,
      absl::StrCat("does not go with ", field, ": ", why,
                   "; leave it out, and continue texts with `troupe "
                   "generate`"));
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

// A text has few positions at a time, which do not cut in every way in which
// the sequences of training do.
absl::Status CheckSample(const JobSpec& job) {
  if (!job.data().has_sample()) return absl::OkStatus();
  const ParallelismSpec& parallelism = job.parallelism();
  for (const LayoutRow* const row : RowsInUse(parallelism)) {
    if (row->no_sample.empty()) continue;
    return RefuseSampleWith(RowsOf(row->field).size() > 1
                                ? MethodText(*row)
                                : absl::StrCat("parallelism.", row->field),
                            row->no_sample);
  }
  if (parallelism.strategies_size() > 0) {
    return RefuseSampleWith(
        "parallelism.strategies",
        "ranks write a text with units that they share alike");
  }
  return absl::OkStatus();
}

}  // namespace troupe
