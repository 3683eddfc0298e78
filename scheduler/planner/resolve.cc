#include "scheduler/planner/resolve.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/resume_words.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/named_rows.h"
#include "scheduler/planner/resolve_data.h"
#include "scheduler/planner/resolve_evaluation.h"
#include "scheduler/planner/resolve_islands.h"
#include "scheduler/planner/resolve_lora.h"
#include "scheduler/planner/resolve_memory.h"
#include "scheduler/planner/resolve_optimizer.h"
#include "scheduler/planner/resolve_parallelism.h"
#include "scheduler/planner/resolve_sample.h"
#include "scheduler/planner/resolve_servers.h"
#include "scheduler/planner/resolve_training.h"

namespace troupe {
namespace {

constexpr size_t kNameLengthMax = 100;

absl::Status CheckJobName(absl::string_view name) {
  RETURN_IF_ERROR(CheckPresent(
      {.present = !name.empty(), .path = "name", .meaning = "the job a name"}));
  bool printable = name.size() <= kNameLengthMax;
  for (const char c : name) {
    printable = printable && !absl::ascii_iscntrl(c);
  }
  int64_t number = 0;
  if (name == "latest" || absl::SimpleAtoi(name, &number)) {
    return FieldError("name",
                      absl::StrCat("\"", name,
                                   "\" is how commands ask for a job by "
                                   "its number or for the latest one; "
                                   "give it another name"));
  }
  if (printable) return absl::OkStatus();
  return FieldError("name", absl::StrCat("use at most ", kNameLengthMax,
                                         " printable characters"));
}

absl::Status ResolveCheckpoint(CheckpointSpec& checkpoint, int64_t steps) {
  if (!checkpoint.has_directory()) checkpoint.set_directory("");
  if (!checkpoint.has_every()) checkpoint.set_every(0);
  if (!checkpoint.has_keep()) checkpoint.set_keep(3);
  if (!checkpoint.has_resume()) checkpoint.set_resume("");
  if (!checkpoint.has_overwrite()) checkpoint.set_overwrite(false);
  RETURN_IF_ERROR(CheckInteger("checkpoint.every", checkpoint.every(),
                               {.min = 0, .max = int64_t{1} << 40}));
  RETURN_IF_ERROR(CheckInteger("checkpoint.keep", checkpoint.keep(),
                               {.min = 0, .max = 1 << 30}));
  if (!checkpoint.directory().empty()) return absl::OkStatus();
  if (checkpoint.every() > 0) {
    return FieldError("checkpoint.every",
                      absl::StrCat("saving every ", checkpoint.every(), " of ",
                                   steps, " steps needs checkpoint.directory"));
  }
  if (IsResumeWord(checkpoint.resume())) {
    return FieldError("checkpoint.resume",
                      absl::StrCat(checkpoint.resume(),
                                   " looks in checkpoint.directory, which is "
                                   "missing; give it, or resume from a "
                                   "directory"));
  }
  if (checkpoint.background()) {
    return FieldError("checkpoint.background",
                      "there is nothing to write without "
                      "checkpoint.directory; give it, or leave this out");
  }
  checkpoint.set_background(false);
  return absl::OkStatus();
}

// REQUIRES the checkpoint resolved. What is only evaluated leaves the files of
// the training beside its checkpoints alone.
absl::Status ResolveMetrics(JobSpec& job) {
  const bool asked = job.has_metrics();
  const std::string beside = job.evaluate() ? "" : job.checkpoint().directory();
  MetricsSpec& metrics = *job.mutable_metrics();
  if (asked && !metrics.has_directory() && metrics.tensorboard().empty() &&
      beside.empty()) {
    return FieldError("metrics",
                      "there is no checkpoint.directory where they could be; "
                      "give metrics.directory or metrics.tensorboard, or leave "
                      "this out");
  }
  if (!metrics.has_directory()) metrics.set_directory(beside);
  if (!metrics.has_tensorboard()) metrics.set_tensorboard("");
  return absl::OkStatus();
}

// Synthetic units may have nothing that could be copied, or dealt.
bool HasUnitsWithoutState(const ModelSpec& model) {
  const auto& bytes = model.parameter_bytes();
  return IsSynthetic(model) &&
         (bytes.empty() || *std::min_element(bytes.begin(), bytes.end()) == 0);
}

absl::Status CheckZeroHasState(const JobSpec& job) {
  if (!HasUnitsWithoutState(job.model())) return absl::OkStatus();
  if (job.parallelism().servers() > 0) {
    return FieldError("parallelism.servers",
                      "of a synthetic unit without model.parameter_bytes there "
                      "is nothing to keep; give all units some, or use 0");
  }
  if (job.parallelism().zero() == 0) return absl::OkStatus();
  return FieldError("parallelism.zero",
                    "of a synthetic unit without model.parameter_bytes there "
                    "is nothing to deal over ranks; give all units some, or "
                    "use 0");
}

absl::Status ResolveRecovery(JobSpec& job) {
  if (!job.has_recovery()) return absl::OkStatus();
  RecoverySpec& recovery = *job.mutable_recovery();
  const bool no_state = HasUnitsWithoutState(job.model());
  const bool served = job.parallelism().servers() > 0;
  if (!recovery.has_copies()) recovery.set_copies(no_state || served ? 0 : 1);
  if (no_state && recovery.copies() > 0) {
    return FieldError("recovery.copies",
                      "of a synthetic unit without model.parameter_bytes "
                      "there is nothing to copy; give all units some, or use "
                      "0");
  }
  if (!recovery.has_every()) recovery.set_every("auto");
  if (!recovery.has_restarts()) recovery.set_restarts(100);
  RETURN_IF_ERROR(
      CheckInteger("recovery.copies", recovery.copies(), {.min = 0, .max = 1}));
  RETURN_IF_ERROR(CheckInteger("recovery.restarts", recovery.restarts(),
                               {.min = 0, .max = 1 << 30}));
  int64_t every = 0;
  if (recovery.every() == "auto") return absl::OkStatus();
  if (!absl::SimpleAtoi(recovery.every(), &every)) {
    return FieldError("recovery.every",
                      absl::StrCat("\"", recovery.every(),
                                   "\" is neither a number of steps nor auto"));
  }
  return CheckInteger("recovery.every", every,
                      {.min = 1, .max = int64_t{1} << 40});
}

// REQUIRES all else resolved.
absl::Status ResolveElastic(JobSpec& job) {
  if (!job.has_elastic()) return absl::OkStatus();
  ElasticSpec& elastic = *job.mutable_elastic();
  if (!elastic.has_min_workers()) elastic.set_min_workers(1);
  RETURN_IF_ERROR(CheckInteger("elastic.min_workers", elastic.min_workers(),
                               {.min = 1, .max = RanksNeeded(job)}));
  if (job.checkpoint().directory().empty()) {
    return FieldError("elastic",
                      "plans for more or fewer workers find the state in a "
                      "checkpoint; give checkpoint.directory, or leave this "
                      "out");
  }
  ASSIGN_OR_RETURN(const Pipeline schedule,
                   FindPipeline(job.parallelism().pipeline_schedule()));
  if (!schedule.asynchronous) return absl::OkStatus();
  return FieldError(
      "elastic",
      absl::StrCat("with ", schedule.name,
                   " the number of ranks is part of what is trained, so that "
                   "no plan with fewer goes on with it; ",
                   kUseSynchronous, ", or leave this out"));
}

// Balances that go by the load of a whole step count it where gradients lie.
absl::Status CheckLoadIsCounted(const JobSpec& job) {
  const std::string& balance = job.model().experts().balance();
  if (balance != "global" && balance != "bias") return absl::OkStatus();
  const TrainingSpec& training = job.training();
  if (training.gradient_precision() == "parameters" &&
      training.precision() != "f32") {
    return FieldError(
        "training.gradient_precision",
        absl::StrCat("model.experts.balance ", balance,
                     " counts the choices of each expert beside the gradients, "
                     "and ",
                     training.precision(),
                     " has no whole numbers of that size; use f32"));
  }
  ASSIGN_OR_RETURN(const Pipeline schedule,
                   FindPipeline(job.parallelism().pipeline_schedule()));
  if (!schedule.asynchronous || job.parallelism().pipeline() <= 1) {
    return absl::OkStatus();
  }
  return FieldError(
      "model.experts.balance",
      absl::StrCat(balance, " goes by the load of a whole step, but with ",
                   schedule.name, " weights change after each micro-batch; ",
                   kUseSynchronous, ", or balance sequence"));
}

}  // namespace

absl::StatusOr<JobSpec> ResolveJob(const JobSpec& job, PlanLength length) {
  JobSpec resolved = job;
  RETURN_IF_ERROR(CheckJobName(job.name()));
  RETURN_IF_ERROR(CheckCommunication(job.communication()));
  RETURN_IF_ERROR(ResolveEvaluation(resolved));
  if (job.has_elastic()) resolved.mutable_recovery();
  RETURN_IF_ERROR(ResolveModel(*resolved.mutable_model()));
  if (resolved.evaluate()) {
    *resolved.mutable_model() = WithoutModules(resolved.model());
  }
  RETURN_IF_ERROR(IsSynthetic(job.model())
                      ? ResolveNoData(*resolved.mutable_data())
                      : ResolveData(job.evaluate(), *resolved.mutable_data()));
  RETURN_IF_ERROR(ResolveServers(resolved));
  RETURN_IF_ERROR(ResolveIslands(resolved));
  RETURN_IF_ERROR(
      ResolveParallelism(job.memory(), *resolved.mutable_parallelism()));
  if (job.has_objective()) {
    return FieldError("objective",
                      "is for parallelism: auto, and here nothing is chosen; "
                      "leave it out");
  }
  RETURN_IF_ERROR(CheckZeroHasState(resolved));
  RETURN_IF_ERROR(ResolveTraining(resolved));
  if (length == PlanLength::kChecked) {
    RETURN_IF_ERROR(CheckPlanLength(resolved));
  }
  RETURN_IF_ERROR(ResolveLora(resolved));
  RETURN_IF_ERROR(CheckLoadIsCounted(resolved));
  RETURN_IF_ERROR(ResolveOptimizer(resolved));
  RETURN_IF_ERROR(ResolveLrScheduler(resolved));
  RETURN_IF_ERROR(ResolveMemory(resolved.model(), *resolved.mutable_memory()));
  RETURN_IF_ERROR(ResolveRecovery(resolved));
  RETURN_IF_ERROR(ResolveCheckpoint(*resolved.mutable_checkpoint(),
                                    resolved.training().steps()));
  RETURN_IF_ERROR(ResolveElastic(resolved));
  RETURN_IF_ERROR(ResolveMetrics(resolved));
  RETURN_IF_ERROR(ResolveSample(resolved));
  RETURN_IF_ERROR(CheckServersFit(resolved));
  RETURN_IF_ERROR(CheckIslandsFit(resolved));
  return resolved;
}

}  // namespace troupe
