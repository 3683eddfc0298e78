#include "scheduler/planner/resolve_training.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/islands.h"
#include "proto/plan/model.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/plan_limits.h"
#include "proto/plan/precision.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/resolve_micro_batches.h"

namespace troupe {
namespace {

constexpr int64_t kStepsMax = int64_t{1} << 40;
constexpr int kBatchMax = 1 << 20;
constexpr int64_t kMicroBatchTokensMax = int64_t{1} << 27;

absl::Status CheckRecipe(const TrainingSpec& training) {
  RETURN_IF_ERROR(CheckInteger("training.steps", training.steps(),
                               {.min = 1, .max = kStepsMax}));
  RETURN_IF_ERROR(CheckInteger("training.global_batch_size",
                               training.global_batch_size(),
                               {.min = 1, .max = kBatchMax}));
  RETURN_IF_ERROR(CheckInteger("training.micro_batch_size",
                               training.micro_batch_size(),
                               {.min = 1, .max = kBatchMax}));
  RETURN_IF_ERROR(CheckNumber("training.gradient_clipping",
                              training.gradient_clipping(),
                              {.min = 0, .max = 1e12}));
  RETURN_IF_ERROR(CheckNumber("training.dropout", training.dropout(),
                              {.min = 0, .max = 1, .max_open = true}));
  RETURN_IF_ERROR(CheckInteger("training.validate_every",
                               training.validate_every(),
                               {.min = 0, .max = kStepsMax}));
  RETURN_IF_ERROR(CheckInteger("training.validation_sequences",
                               training.validation_sequences(),
                               {.min = 1, .max = 1 << 30}));
  RETURN_IF_ERROR(CheckInteger("training.stop_after", training.stop_after(),
                               {.min = 0, .max = training.steps()}));
  RETURN_IF_ERROR(CheckName("training.precision", training.precision(),
                            {"f32", "bf16", "fp16"}));
  return CheckName("training.gradient_precision", training.gradient_precision(),
                   {"f32", "parameters"});
}

LongestSequence LongestOf(const ModelSpec& model) {
  constexpr int kSyntheticMax = 1 << 20;
  return IsSynthetic(model)
             ? LongestSequence{"the synthetic limit", kSyntheticMax}
             : LongestSequenceOf(model);
}

// Whether ranks run ahead of the optimizer, so that nothing may wait for all of
// them.
bool NeverDrains(const ParallelismSpec& parallelism) {
  if (parallelism.pipeline() <= 1) return false;
  const absl::StatusOr<Pipeline> schedule =
      FindPipeline(parallelism.pipeline_schedule());
  return schedule.ok() && schedule->asynchronous;
}

absl::Status ResolveClipping(JobSpec& job) {
  TrainingSpec& training = *job.mutable_training();
  const bool never_drains = NeverDrains(job.parallelism());
  if (!training.has_gradient_clipping()) {
    training.set_gradient_clipping(
        never_drains || IsSynthetic(job.model()) ? 0.0 : 1.0);
  }
  if (!never_drains || training.gradient_clipping() == 0) {
    return absl::OkStatus();
  }
  return FieldError(
      "training.gradient_clipping",
      absl::StrCat(training.gradient_clipping(),
                   " needs the norm of all gradients before each update, and ",
                   job.parallelism().pipeline_schedule(),
                   " never stops for one; use 0, or a synchronous "
                   "parallelism.pipeline_schedule"));
}

absl::Status CheckLossScale(const JobSpec& job) {
  const TrainingSpec& training = job.training();
  if (training.has_loss_scale()) {
    // Updates multiply by its inverse, an f32.
    RETURN_IF_ERROR(CheckNumber("training.loss_scale", training.loss_scale(),
                                {.min = 1e-30, .max = 1e30}));
    if (!ScalesLoss(training)) {
      return FieldError("training.loss_scale",
                        absl::StrCat("is for fp16, not ", training.precision(),
                                     "; leave it out"));
    }
  }
  if (!ScalesLoss(training) || !NeverDrains(job.parallelism())) {
    return absl::OkStatus();
  }
  return FieldError(
      "training.precision",
      absl::StrCat(
          "fp16 leaves out updates whose gradients overflow on any rank, and ",
          job.parallelism().pipeline_schedule(),
          " never stops to ask all of them; use bf16, or a synchronous "
          "parallelism.pipeline_schedule"));
}

absl::Status CheckSequenceLength(const JobSpec& job) {
  const TrainingSpec& training = job.training();
  const auto [field, positions] = LongestOf(job.model());
  if (training.sequence_length() < 1 ||
      training.sequence_length() > positions) {
    return FieldError(
        "training.sequence_length",
        absl::StrCat(training.sequence_length(), " is not within ", field, " ",
                     positions, "; use 1 to ", positions));
  }
  const int64_t tokens =
      int64_t{training.micro_batch_size()} * training.sequence_length();
  if (tokens > kMicroBatchTokensMax) {
    return FieldError(
        "training.micro_batch_size",
        absl::StrCat(training.micro_batch_size(),
                     " x training.sequence_length ", training.sequence_length(),
                     " = ", tokens, " tokens at once; use at most ",
                     kMicroBatchTokensMax / training.sequence_length()));
  }
  return absl::OkStatus();
}

absl::Status ResolveBatches(JobSpec& job) {
  const int64_t global = SamplesOfIsland(job);
  const int64_t micro = job.training().micro_batch_size();
  const int64_t data = DataOfStep(job);
  const int islands = IslandsOf(job.parallelism());
  const std::string batch = absl::StrCat(
      "training.global_batch_size ", job.training().global_batch_size(),
      islands == 1
          ? ""
          : absl::StrCat(" / parallelism.islands ", islands, " = ", global));
  if (global % micro != 0) {
    return FieldError("training.micro_batch_size",
                      absl::StrCat(micro, " does not divide ", batch, "; use ",
                                   DivisorsText(global, micro)));
  }
  const int64_t together = MicroBatchSequences(job);
  const int shared = RanksOfReplica(job.parallelism());
  const RankField* const field = FieldOfReplica(job.parallelism());
  if (field != nullptr && global % together != 0) {
    return FieldError(
        field->Path(),
        absl::StrCat(shared,
                     " ranks of parallelism.data compute a micro-batch of ",
                     micro, " sequences each together, and ", batch,
                     " is no multiple of ", together, "; use ",
                     shared == RanksOf(job.parallelism(), field->name)
                         ? DivisorsText(global / micro, shared)
                         : "fewer ranks of data"));
  }
  RETURN_IF_ERROR(ResolveMicroBatches(job));
  const bool even = job.parallelism().micro_batch_split() == kSplitEven;
  if (even && (global / micro) % data != 0) {
    return FieldError(
        "parallelism.data",
        absl::StrCat(data, " does not divide ", batch,
                     " / training.micro_batch_size ", micro, " = ",
                     global / micro, " micro-batches; use ",
                     DivisorsText(global / micro, data),
                     ", or parallelism.micro_batch_split: by_speed"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ResolveTraining(JobSpec& job) {
  TrainingSpec& training = *job.mutable_training();
  if (training.has_epochs()) {
    return FieldError("training.epochs",
                      training.has_steps()
                          ? "is beside training.steps; leave one of them out"
                          : "is turned into training.steps by `troupe`, which "
                            "reads the token files; submit the job with it, or "
                            "give training.steps");
  }
  RETURN_IF_ERROR(CheckPresent({.present = training.has_steps(),
                                .path = "training.steps",
                                .meaning = "the number of optimizer steps"}));
  RETURN_IF_ERROR(
      CheckPresent({.present = training.has_global_batch_size(),
                    .path = "training.global_batch_size",
                    .meaning = "the sequences of one step, over all ranks"}));
  RETURN_IF_ERROR(
      CheckPresent({.present = training.has_micro_batch_size(),
                    .path = "training.micro_batch_size",
                    .meaning = "the sequences of one forward pass on a rank"}));
  if (!training.has_sequence_length()) {
    training.set_sequence_length(
        IsSynthetic(job.model()) ? 1
                                 : LongestSequenceOf(job.model()).positions);
  }
  if (!training.has_precision()) training.set_precision("f32");
  if (!training.has_gradient_precision()) {
    training.set_gradient_precision("f32");
  }
  if (!training.has_seed()) training.set_seed(0);
  RETURN_IF_ERROR(ResolveClipping(job));
  if (!training.has_dropout()) training.set_dropout(0);
  if (!training.has_validate_every()) training.set_validate_every(0);
  if (!training.has_stop_after()) training.set_stop_after(0);
  if (!training.has_validation_sequences()) {
    const int64_t sequences = int64_t{4} * training.global_batch_size();
    training.set_validation_sequences(
        static_cast<int32_t>(std::clamp<int64_t>(sequences, 1, 1 << 30)));
  }
  RETURN_IF_ERROR(CheckRecipe(training));
  RETURN_IF_ERROR(CheckLossScale(job));
  if (training.validate_every() > 0 && job.data().validation_fraction() == 0 &&
      job.data().validation().empty()) {
    return FieldError(
        "training.validate_every",
        absl::StrCat(training.validate_every(),
                     " needs data.validation_fraction above 0; use 0.05, or "
                     "give data.validation"));
  }
  RETURN_IF_ERROR(CheckSequenceLength(job));
  return ResolveBatches(job);
}

absl::Status CheckPlanLength(const JobSpec& job) {
  const TrainingSpec& training = job.training();
  const int64_t units = UnitCount(job.model());
  const int64_t micro = training.micro_batch_size();
  const int64_t data = job.parallelism().data();
  const int64_t micro_batches_max = kPassesMax / units;
  const int64_t micro_batches = MicroBatchesMost(job);
  if (micro_batches > micro_batches_max) {
    return FieldError(
        "training.micro_batch_size",
        absl::StrCat(micro, " makes ", micro_batches, " micro-batches of ",
                     "training.global_batch_size ",
                     training.global_batch_size(),
                     data > 1 ? " on each replica" : "", "; a model of ", units,
                     " units allows ", micro_batches_max,
                     " a step: use a larger micro-batch"));
  }
  if (training.validate_every() > 0 &&
      training.validation_sequences() / micro / data > micro_batches_max) {
    return FieldError("training.validation_sequences",
                      absl::StrCat(training.validation_sequences(),
                                   " is too many at once; use at most ",
                                   micro_batches_max * micro * data));
  }
  return absl::OkStatus();
}

absl::Status ResolveLrScheduler(JobSpec& job) {
  LrSchedulerSpec& scheduler = *job.mutable_lr_scheduler();
  const int64_t steps = job.training().steps();
  if (!scheduler.has_name()) scheduler.set_name("constant");
  RETURN_IF_ERROR(CheckName("lr_scheduler.name", scheduler.name(),
                            {"cosine", "linear", "constant", "wsd"}));
  const bool wsd = scheduler.name() == "wsd";
  if (!scheduler.has_warmup_steps()) scheduler.set_warmup_steps(0);
  if (!scheduler.has_min_lr()) scheduler.set_min_lr(0);
  // A job cut short for a trial may end within its warm-up.
  RETURN_IF_ERROR(CheckInteger("lr_scheduler.warmup_steps",
                               scheduler.warmup_steps(),
                               {.min = 0, .max = kStepsMax}));
  const int64_t after_warmup =
      std::max<int64_t>(0, steps - scheduler.warmup_steps());
  if (!scheduler.has_decay_steps()) {
    scheduler.set_decay_steps(
        wsd ? std::min(std::max<int64_t>(1, steps / 10), after_warmup) : 0);
  }
  RETURN_IF_ERROR(CheckNumber("lr_scheduler.min_lr", scheduler.min_lr(),
                              {.min = 0, .max = job.optimizer().lr()}));
  if (scheduler.name() == "constant" && scheduler.min_lr() != 0) {
    return FieldError("lr_scheduler.min_lr",
                      "constant never decays; leave it out, or use cosine, "
                      "linear or wsd");
  }
  if (!wsd && scheduler.decay_steps() != 0) {
    return FieldError(
        "lr_scheduler.decay_steps",
        absl::StrCat("is for wsd, not ", scheduler.name(), "; leave it out"));
  }
  return CheckInteger("lr_scheduler.decay_steps", scheduler.decay_steps(),
                      {.min = 0, .max = wsd ? after_warmup : 0});
}

}  // namespace troupe
