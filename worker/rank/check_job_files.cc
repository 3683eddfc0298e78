#include "worker/rank/check_job_files.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "proto/base/resume_words.h"
#include "proto/base/status.h"
#include "proto/plan/data_files.h"
#include "proto/plan/fields.h"
#include "proto/plan/model.h"
#include "proto/plan/slices.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "storage/dataset/token_file.h"
#include "storage/disk/directory.h"
#include "worker/rank/model_files.h"
#include "worker/rank/rank_state.h"
#include "worker/rank/sample_prompt.h"

namespace troupe {
namespace {

// Whether an error says something of the file, and not of the moment.
bool IsVerdict(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kOutOfRange:
      return true;
    default:
      return false;
  }
}

// Refuses the field where the status is a verdict. A message that begins with a
// field of its own keeps that one.
absl::Status Refuse(absl::string_view field, const absl::Status& status) {
  if (status.ok() || !IsVerdict(status)) return absl::OkStatus();
  for (const absl::string_view own :
       {"model.", "data.", "checkpoint.", "training."}) {
    if (absl::StartsWith(status.message(), own)) {
      return absl::InvalidArgumentError(status.message());
    }
  }
  return FieldError(field, status.message());
}

// Whether the job says all that is looked at here, as resolved ones do.
bool IsResolved(const JobSpec& job) {
  const TrainingSpec& training = job.training();
  const LoraSpec& lora = training.lora();
  return training.has_sequence_length() && job.has_evaluate() &&
         job.data().has_validation_fraction() &&
         job.data().has_isolate_documents() &&
         (!training.has_lora() || (lora.has_rank() && lora.modules_size() > 0));
}

// The identity of the data; empty where the job has none, or it cannot be read
// now.
absl::StatusOr<std::string> CheckData(const JobSpec& job) {
  for (const DataFileField& file : DataFiles(job.data())) {
    const auto tokens = TokenFile::Open(file.path);
    RETURN_IF_ERROR(Refuse(file.field, tokens.status()));
    if (!tokens.ok()) return std::string();
    RETURN_IF_ERROR(Refuse(
        file.field, CheckVocabulary(tokens->layout(), file.path, job.model())));
  }
  if (!IsResolved(job) || DataFiles(job.data()).empty()) {
    return std::string();
  }
  const absl::StatusOr<SampleReader> data = OpenData(job);
  RETURN_IF_ERROR(Refuse("data", data.status()));
  if (data.ok() && job.data().has_sample()) {
    RETURN_IF_ERROR(Refuse("data.sample", SamplePromptOf(job, *data).status()));
  }
  return data.ok() ? data->identity() : std::string();
}

// Only what is looked at here: which parameters there are, and their shapes.
absl::StatusOr<Plan> OutlineOf(const JobSpec& job) {
  Plan outline;
  *outline.mutable_job() = job;
  ASSIGN_OR_RETURN(
      UnitList list,
      ModelUnits(job.model(),
                 {.sequences = 1,
                  .sequence_length = job.training().sequence_length(),
                  .lora = job.training().has_lora() ? &job.training().lora()
                                                    : nullptr}));
  for (Unit& unit : list.units) *outline.add_units() = std::move(unit);
  return outline;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

absl::Status CheckShapes(const Manifest& manifest, const Plan& outline) {
  std::map<absl::string_view, const ManifestTensor*> stored;
  for (const ManifestTensor& tensor : manifest.tensors) {
    stored[tensor.name] = &tensor;
  }
  for (const Unit& unit : outline.units()) {
    for (const Parameter& parameter : unit.parameters()) {
      const auto it = stored.find(parameter.name());
      if (it == stored.end()) continue;  // a router's state begins as zeros
      const std::vector<int64_t> here = WholeShape(parameter);
      if (it->second->shape == here) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("it is of another model: ", parameter.name(), " is ",
                       ShapeText(it->second->shape), " there, but ",
                       ShapeText(here), " in this job"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFitsModel(const Manifest& manifest, const Plan& outline) {
  RETURN_IF_ERROR(CheckSameModel(manifest, JobOf(manifest), outline));
  return CheckShapes(manifest, outline);
}

absl::Status CheckCheckpointFits(const Manifest& manifest, const Plan& outline,
                                 const std::string& data) {
  const JobSpec& job = outline.job();
  const int64_t steps = job.training().steps();
  if (job.evaluate()) return CheckFitsModel(manifest, outline);
  if (manifest.step > steps && job.checkpoint().resume() != kResumeAuto) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is of step ", manifest.step,
                     ", but training.steps is ", steps));
  }
  RETURN_IF_ERROR(CheckFitsModel(manifest, outline));
  if (job.data().changed() || manifest.data.empty() || data.empty() ||
      manifest.data == data) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "it was trained on other tokens, or on the same in another order: ",
      manifest.data, ", and this job has ", data,
      "; if other data is meant from here on, set data.changed: true"));
}

// What a checkpoint gives the job; from files come the others.
struct Resumed {
  bool model = false;
  bool adapters = false;
};

// NotFound says what is there instead; DataLoss which file is missing or torn.
absl::StatusOr<Manifest> ReadWhole(const std::string& path) {
  RETURN_IF_ERROR(ReadCheckpoint(path).status());
  absl::StatusOr<Manifest> manifest = CheckCheckpoint(path, CheckDepth::kSizes);
  if (!absl::IsDataLoss(manifest.status())) return manifest;
  return absl::DataLossError(absl::StrCat(
      "checkpoint ", path, " is not whole: ", manifest.status().message(),
      "; name another one, or its folder, of which the newest whole one is "
      "taken"));
}

// Of the checkpoint from which training goes on, which then fits the job.
absl::StatusOr<Resumed> CheckResume(const Plan& outline,
                                    const std::string& data) {
  constexpr char kField[] = "checkpoint.resume";
  constexpr Resumed kAll = {.model = true, .adapters = true};
  const CheckpointSpec& checkpoint = outline.job().checkpoint();
  std::string path = checkpoint.resume();
  if (path.empty()) return Resumed();
  if (IsResumeWord(path) || HoldsCheckpoints(path)) {
    const std::string folder =
        IsResumeWord(path) ? checkpoint.directory() : path;
    const auto entries = ListCheckpoints(folder);
    if (path == kResumeAuto && entries.ok() && entries->empty()) {
      return Resumed();
    }
    const auto newest = FindNewestComplete(folder);
    RETURN_IF_ERROR(Refuse(kField, newest.status()));
    if (!newest.ok()) return kAll;
    path = newest->path;
  }
  const absl::StatusOr<Manifest> manifest = ReadWhole(path);
  RETURN_IF_ERROR(Refuse(kField, manifest.status()));
  if (!manifest.ok()) return kAll;
  RETURN_IF_ERROR(Refuse(
      kField, Annotate(CheckCheckpointFits(*manifest, outline, data),
                       absl::StrCat("checkpoint ", path))));
  return Resumed{.model = true,
                 .adapters = JobOf(*manifest).training().has_lora()};
}

absl::Status CheckAdapter(const Plan& outline) {
  if (outline.job().training().lora().adapter().empty()) {
    return absl::OkStatus();
  }
  return Refuse(kAdapterField, OpenAdapterOf(outline).status());
}

absl::Status CheckWeights(const Plan& outline) {
  const std::string& directory = outline.job().model().hf();
  if (directory.empty()) return absl::OkStatus();
  return Refuse("model.hf",
                OpenHuggingFaceWeights(directory, ContentsOf(outline),
                                       HuggingFaceCheck::kHeaders)
                    .status());
}

// Where a job begins, rank 0 makes its files there.
absl::Status CheckMetrics(const JobSpec& job) {
  const MetricsSpec& metrics = job.metrics();
  if (!metrics.directory().empty()) {
    // By default it is that of checkpoints.
    const bool is_beside = metrics.directory() == job.checkpoint().directory();
    RETURN_IF_ERROR(
        Refuse(is_beside ? "checkpoint.directory" : "metrics.directory",
               CheckDirectoryTakesFiles(metrics.directory())));
  }
  if (metrics.tensorboard().empty()) return absl::OkStatus();
  return Refuse("metrics.tensorboard",
                CheckDirectoryTakesFiles(metrics.tensorboard()));
}

}  // namespace

absl::Status CheckFilesOf(const JobSpec& job) {
  RETURN_IF_ERROR(CheckMetrics(job));
  ASSIGN_OR_RETURN(const std::string data, CheckData(job));
  if (!IsResolved(job) || IsSynthetic(job.model())) return absl::OkStatus();
  const absl::StatusOr<Plan> outline = OutlineOf(job);
  // The planner says it better.
  if (!outline.ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Resumed resumed, CheckResume(*outline, data));
  if (!resumed.model) RETURN_IF_ERROR(CheckWeights(*outline));
  return resumed.adapters ? absl::OkStatus() : CheckAdapter(*outline);
}

}  // namespace troupe
