#include "clients/cli/evaluation_job.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "clients/cli/job_epochs.h"
#include "clients/hugging_face/expand_adapter.h"
#include "clients/hugging_face/expand_model.h"
#include "clients/job_file/print_job.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/job_json.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/plan_limits.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "storage/disk/roots.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNameMax = 80;
// Tokens of one forward pass: enough for matrix products of a good shape.
constexpr int64_t kMicroBatchTokens = 1024;
// Micro-batches of a replica in a step: enough to fill a pipeline, few enough
// that progress is seen.
constexpr int64_t kMicroBatchesMin = 4;

// As the workers see it, wherever they run.
std::string Absolute(const std::string& path) {
  std::error_code error;
  if (!RootName(path).empty()) return path;
  return fs::absolute(path, error).lexically_normal().string();
}

bool Exists(const std::string& directory, absl::string_view file) {
  std::error_code error;
  return fs::exists(fs::path(directory) / std::string(file), error);
}

absl::Status TakeCheckpoint(const std::string& path, JobSpec& job) {
  ASSIGN_OR_RETURN(const Manifest manifest,
                   ReadManifest(path, ManifestPart::kWithoutTensors));
  absl::StatusOr<JobSpec> saved = ParseJobJson(manifest.job);
  if (!saved.ok()) return Annotate(saved.status(), path);
  *job.mutable_model() = saved->model();
  // What its weights are, the checkpoint says.
  job.mutable_model()->clear_hf();
  job.mutable_checkpoint()->set_resume(path);
  const TrainingSpec& before = saved->training();
  TrainingSpec& training = *job.mutable_training();
  if (before.has_sequence_length()) {
    training.set_sequence_length(before.sequence_length());
  }
  if (before.has_precision()) training.set_precision(before.precision());
  if (before.has_lora()) {
    *training.mutable_lora() = before.lora();
    training.mutable_lora()->clear_adapter();
  }
  if (saved->data().isolate_documents()) {
    job.mutable_data()->set_isolate_documents(true);
  }
  return absl::OkStatus();
}

absl::Status TakeModel(const std::string& path, JobSpec& job) {
  if (HoldsCheckpoints(path)) {
    ASSIGN_OR_RETURN(const NewestCheckpoint newest, FindNewestComplete(path));
    return TakeCheckpoint(newest.path, job);
  }
  if (Exists(path, kManifestFile)) return TakeCheckpoint(path, job);
  if (Exists(path, "config.json")) {
    job.mutable_model()->set_hf(path);
    return absl::OkStatus();
  }
  std::error_code error;
  if (!fs::exists(path, error)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": there is no such directory"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": is no model: there is neither config.json, as in a directory of "
      "Hugging Face's, nor manifest.json, as in a checkpoint"));
}

// Errors of fields that no override gave name the model, as there is no file.
absl::StatusOr<JobFile> WithOverrides(const JobSpec& job,
                                      const EvaluationOptions& options) {
  ASSIGN_OR_RETURN(JobFile file, ParseJob({.name = options.model,
                                           .folder = "/",
                                           .text = JobYaml(job),
                                           .overrides = options.overrides}));
  for (auto at = file.positions.begin(); at != file.positions.end();) {
    const bool from_text =
        absl::StartsWith(at->second, absl::StrCat(options.model, ":"));
    at = from_text ? file.positions.erase(at) : std::next(at);
  }
  return file;
}

int64_t ReplicasOf(const JobSpec& job) {
  return std::max(1, job.parallelism().data());
}

// A multiple, as kernels and layouts like it, of which the longest row fills
// the most.
constexpr int64_t kRowsLengthMultiple = 16;
// Steps in which the losses of rows come back, at most: many enough to see
// progress, few enough for the scheduler to keep them all.
constexpr int64_t kRowsStepsMax = 4000;

// `most`: the longest sequence that the model was made or trained for.
absl::Status ChooseRowLength(const EvaluationOptions::Rows& rows, int64_t most,
                             TrainingSpec& training) {
  const bool is_given = training.has_sequence_length();
  if (!is_given) {
    const int64_t rounded = (rows.longest + kRowsLengthMultiple - 1) /
                            kRowsLengthMultiple * kRowsLengthMultiple;
    training.set_sequence_length(static_cast<int32_t>(std::min(rounded, most)));
  }
  if (rows.longest <= training.sequence_length()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      rows.longest_is, " is of ", rows.longest, " tokens with its prompt, and ",
      is_given ? "training.sequence_length is "
               : "the model was trained on sequences of ",
      training.sequence_length(), "; shorten the prompt, or leave the item out",
      is_given ? ", or give a larger one"
               : ", or, if the model reads longer ones, --set "
                 "training.sequence_length=N"));
}

absl::StatusOr<int64_t> CountWindows(const EvaluationOptions& options,
                                     const JobSpec& job) {
  if (options.rows.count > 0) return options.rows.count;
  return EvaluationWindows(job);
}

absl::Status ChooseBatches(const EvaluationOptions& options, JobSpec& job) {
  TrainingSpec& training = *job.mutable_training();
  if (training.has_global_batch_size() && !training.has_micro_batch_size()) {
    training.set_micro_batch_size(1);
  }
  // The most rows of which a step can say the losses.
  const int64_t most = options.rows.count > 0
                           ? kStepSequencesMax
                           : std::numeric_limits<int32_t>::max();
  if (!training.has_micro_batch_size()) {
    const int64_t length = std::max(1, training.sequence_length());
    const int64_t filled =
        std::min(kMicroBatchTokens / length, most / ReplicasOf(job));
    training.set_micro_batch_size(
        static_cast<int32_t>(std::max<int64_t>(1, filled)));
  }
  if (training.has_global_batch_size()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t windows, CountWindows(options, job));
  const int64_t at_once = training.micro_batch_size() * ReplicasOf(job);
  const int64_t needed = (windows + at_once - 1) / at_once;
  int64_t each =
      std::max(kMicroBatchesMin, int64_t{2} * job.parallelism().pipeline());
  if (options.rows.count > 0) {
    each = std::max(each, (needed + kRowsStepsMax - 1) / kRowsStepsMax);
  }
  each = std::min({each, needed, std::max<int64_t>(1, most / at_once)});
  training.set_global_batch_size(static_cast<int32_t>(at_once * each));
  return absl::OkStatus();
}

// What the user and the model leave open.
absl::Status FillIn(const EvaluationOptions& options, int trained_length,
                    JobSpec& job) {
  if (!job.has_parallelism()) {
    int64_t data = options.workers;
    if (options.rows.count > 0) data = std::min(data, kStepSequencesMax);
    job.mutable_parallelism()->set_data(static_cast<int32_t>(data));
  }
  TrainingSpec& training = *job.mutable_training();
  const int positions = LongestSequenceOf(job.model()).positions;
  if (options.rows.count > 0) {
    RETURN_IF_ERROR(ChooseRowLength(
        options.rows, trained_length > 0 ? trained_length : positions,
        training));
  } else if (!training.has_sequence_length()) {
    training.set_sequence_length(std::min(kEvaluationLengthMax, positions));
  }
  RETURN_IF_ERROR(ChooseBatches(options, job));
  if (options.rows.count == 0) return CountEvaluationSteps(job);
  const int64_t batch = std::max(1, training.global_batch_size());
  training.set_steps((options.rows.count + batch - 1) / batch);
  return absl::OkStatus();
}

// Of rows that are still to be written, an override may say how they are
// evaluated, and not which.
absl::Status CheckRowsJob(const JobSpec& given, const JobSpec& job) {
  if (job.data().validation() != given.data().validation()) {
    return FieldError("data.validation",
                      "is the file of the choices here; leave it out");
  }
  if (!job.sequence_losses()) {
    return FieldError("sequence_losses",
                      "are what choices are compared by; leave it out");
  }
  if (!job.evaluate()) {
    return FieldError("evaluate", "is what is done here; leave it out");
  }
  if (!job.training().has_steps()) return absl::OkStatus();
  return FieldError("training.steps",
                    "is counted by the choices; leave it out");
}

}  // namespace

absl::StatusOr<std::string> NewestModel(const std::string& model) {
  if (!HoldsCheckpoints(model)) return model;
  ASSIGN_OR_RETURN(const NewestCheckpoint newest, FindNewestComplete(model));
  return newest.path;
}

absl::StatusOr<JobFile> MakeEvaluationJob(const EvaluationOptions& options) {
  const std::string model = Absolute(options.model);
  RETURN_IF_ERROR(CheckReadableHere("MODEL", model));
  JobSpec job;
  job.set_name(absl::StrCat(
      "eval ", fs::path(model).lexically_normal().filename().string().substr(
                   0, kNameMax)));
  job.set_evaluate(true);
  RETURN_IF_ERROR(TakeModel(model, job));
  job.mutable_data()->set_validation(Absolute(options.tokens));
  const int trained_length = job.training().sequence_length();
  if (options.rows.count > 0) {
    job.set_sequence_losses(true);
    if (job.has_training()) job.mutable_training()->clear_sequence_length();
  }
  ASSIGN_OR_RETURN(JobFile file, WithOverrides(job, options));
  if (options.rows.count > 0) {
    const absl::Status possible = CheckRowsJob(job, file.spec);
    if (!possible.ok()) return file.Locate(possible);
  }
  const absl::Status expanded = ExpandHuggingFaceModel(
      HuggingFaceWeightsUse::kTrained, *file.spec.mutable_model());
  if (!expanded.ok()) return file.Locate(expanded);
  const absl::Status adapted = ExpandAdapter(*file.spec.mutable_training());
  if (!adapted.ok()) return file.Locate(adapted);
  const absl::Status filled = FillIn(options, trained_length, file.spec);
  if (!filled.ok()) return file.Locate(filled);
  return file;
}

}  // namespace troupe
