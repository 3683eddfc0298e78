#include "clients/cli/job_epochs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/data_files.h"
#include "proto/plan/fields.h"
#include "proto/plan/model_fields.h"
#include "storage/dataset/file_order.h"
#include "storage/dataset/token_file.h"

namespace troupe {
namespace {

constexpr double kStepsMax = int64_t{1} << 40;

// `who` needs to know.
absl::StatusOr<uint64_t> WindowsOf(const char* who, const DataFileField& file,
                                   const DataSpec& data,
                                   uint64_t sequence_length) {
  const absl::StatusOr<TokenFile> tokens = TokenFile::Open(file.path);
  if (!tokens.ok()) {
    return FieldError(
        file.field,
        absl::StrCat(who, " needs its size: ", tokens.status().message(),
                     "; with --root NAME=DIR where the path "
                     "begins with NAME:, or give "
                     "training.steps"));
  }
  const absl::StatusOr<DataOrder> order =
      OrderOf(*tokens, {.sequence_length = sequence_length,
                        .validation_fraction = data.validation_fraction(),
                        .validation_blocks = static_cast<uint64_t>(
                            std::max(1, data.validation_blocks()))});
  if (!order.ok()) return FieldError(file.field, order.status().message());
  return order->training_windows();
}

// 0: not known before the job is planned.
int64_t SequenceLength(const JobSpec& job) {
  if (job.training().has_sequence_length()) {
    return job.training().sequence_length();
  }
  return job.model().has_max_position_embeddings()
             ? LongestSequenceOf(job.model()).positions
             : 0;
}

absl::Status MissingField(const char* field, const char* who) {
  return FieldError(
      field, absl::StrCat("is needed, above 0, to turn ", who, " into steps"));
}

}  // namespace

absl::Status ExpandEpochs(JobSpec& job) {
  if (!job.training().has_epochs()) return absl::OkStatus();
  TrainingSpec& training = *job.mutable_training();
  if (training.has_steps()) {
    return FieldError("training.epochs",
                      "is beside training.steps; leave one of them out");
  }
  RETURN_IF_ERROR(CheckNumber("training.epochs", training.epochs(),
                              {.min = 0, .max = 1e9, .min_open = true}));
  const int64_t length = SequenceLength(job);
  if (length < 1 || training.global_batch_size() < 1) {
    return MissingField(
        length < 1 ? "training.sequence_length" : "training.global_batch_size",
        "training.epochs");
  }
  uint64_t windows = 0;
  for (const DataFileField& file : TrainingFiles(job.data())) {
    ASSIGN_OR_RETURN(const uint64_t of_file,
                     WindowsOf("training.epochs", file, job.data(), length));
    windows += of_file;
  }
  if (windows == 0) {
    return FieldError("training.epochs",
                      "is for a job with data.tokens; give training.steps");
  }
  const double steps =
      std::ceil(training.epochs() * static_cast<double>(windows) /
                training.global_batch_size());
  if (steps > kStepsMax) {
    return FieldError("training.epochs", absl::StrCat(training.epochs(),
                                                      " are more than 2^40 "
                                                      "steps; use fewer"));
  }
  training.set_steps(static_cast<int64_t>(steps));
  training.clear_epochs();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> EvaluationWindows(const JobSpec& job) {
  const int64_t length = SequenceLength(job);
  if (length < 1) {
    return MissingField("training.sequence_length", "data.validation");
  }
  RETURN_IF_ERROR(CheckPresent({.present = !job.data().validation().empty(),
                                .path = "data.validation",
                                .meaning = "the token file to evaluate on"}));
  const DataFileField file = {.field = "data.validation",
                              .path = job.data().validation()};
  ASSIGN_OR_RETURN(const uint64_t windows,
                   WindowsOf("evaluate", file, DataSpec(), length));
  return static_cast<int64_t>(windows);
}

absl::Status CountEvaluationSteps(JobSpec& job) {
  if (!job.evaluate() || job.training().has_steps()) return absl::OkStatus();
  const int64_t batch = job.training().global_batch_size();
  if (batch < 1) {
    return MissingField("training.global_batch_size", "data.validation");
  }
  ASSIGN_OR_RETURN(const int64_t windows, EvaluationWindows(job));
  job.mutable_training()->set_steps((windows + batch - 1) / batch);
  return absl::OkStatus();
}

}  // namespace troupe
