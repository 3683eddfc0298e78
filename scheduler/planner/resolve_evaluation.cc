#include "scheduler/planner/resolve_evaluation.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/base/resume_words.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model.h"
#include "proto/plan/plan_limits.h"
#include "scheduler/tiers/recompute.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Fields, or sections of them, that are of training alone.
constexpr absl::string_view kOfTraining[] = {
    "data.tokens",
    "data.changed",
    "data.sample",
    "data.sources",
    "data.validation_blocks",
    "data.validation_fraction",
    "elastic",
    "lr_scheduler",
    "memory.activations",
    "memory.gradients",
    "memory.optimizer",
    "memory.recompute",
    "optimizer",
    "parallelism.servers",
    "recovery",
    "servers",
    "training.dropout",
    "training.epochs",
    "training.freeze",
    "training.gradient_clipping",
    "training.gradient_precision",
    "training.loss_scale",
    "training.stop_after",
    "training.validate_every",
    "training.validation_sequences",
    "checkpoint.background",
    "checkpoint.directory",
    "checkpoint.every",
    "checkpoint.keep",
    "checkpoint.overwrite",
};

// What these fields say in a job that was resolved.
JobSpec WithoutTraining(const JobSpec& job) {
  JobSpec spec;
  DataSpec& data = *spec.mutable_data();
  data.set_changed(false);
  data.set_validation_blocks(1);
  data.set_validation_fraction(0);
  spec.mutable_optimizer()->set_name("none");
  spec.mutable_lr_scheduler()->set_name("constant");
  spec.mutable_lr_scheduler()->set_warmup_steps(0);
  spec.mutable_lr_scheduler()->set_min_lr(0);
  spec.mutable_lr_scheduler()->set_decay_steps(0);
  MemorySpec& memory = *spec.mutable_memory();
  memory.set_activations("device");
  memory.set_gradients("device");
  memory.set_optimizer("device");
  memory.mutable_recompute()->set_mode(kRecomputeNone);
  TrainingSpec& training = *spec.mutable_training();
  training.set_dropout(0);
  training.set_gradient_clipping(0);
  training.set_gradient_precision("f32");
  training.set_stop_after(0);
  training.set_validate_every(1);
  training.set_validation_sequences(job.training().global_batch_size());
  CheckpointSpec& checkpoint = *spec.mutable_checkpoint();
  checkpoint.set_background(false);
  checkpoint.set_directory("");
  checkpoint.set_every(0);
  checkpoint.set_keep(3);
  checkpoint.set_overwrite(false);
  return spec;
}

bool IsOfTraining(const std::string& path) {
  return std::any_of(std::begin(kOfTraining), std::end(kOfTraining),
                     [&path](absl::string_view field) {
                       return path == field ||
                              absl::StartsWith(path, absl::StrCat(field, "."));
                     });
}

bool IsSet(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  return field.is_repeated() ? reflection.FieldSize(message, &field) > 0
                             : reflection.HasField(message, &field);
}

bool IsSection(const FieldDescriptor& field) {
  return !field.is_repeated() &&
         field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

bool SameValue(const Message& a, const Message& b,
               const FieldDescriptor& field) {
  google::protobuf::util::MessageDifferencer differencer;
  return IsSet(b, field) &&
         differencer.CompareWithFields(a, b, {&field}, {&field});
}

absl::Status RefuseField(const std::string& path) {
  return FieldError(path,
                    "is of training, and with evaluate: true nothing is "
                    "trained; leave it out");
}

// Refuses what is set of training and is not as in `neutral`, the same section
// of WithoutTraining.
absl::Status RefuseTraining(const std::string& prefix, const Message& message,
                            const Message& neutral) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* const field : fields) {
    const std::string path = absl::StrCat(prefix, field->name());
    if (IsSection(*field)) {
      // Those without any field that a resolved job has.
      if (IsOfTraining(path) && !IsSet(neutral, *field)) {
        return RefuseField(path);
      }
      RETURN_IF_ERROR(RefuseTraining(
          absl::StrCat(path, "."), reflection.GetMessage(message, field),
          neutral.GetReflection()->GetMessage(neutral, field)));
    } else if (IsOfTraining(path) && !SameValue(message, neutral, *field)) {
      return RefuseField(path);
    }
  }
  return absl::OkStatus();
}

// What is measured: the weights of a checkpoint, of model.hf, or, of neither,
// those that training begins with.
absl::Status CheckWeights(const JobSpec& job) {
  const std::string& resume = job.checkpoint().resume();
  if (IsResumeWord(resume)) {
    return FieldError(
        "checkpoint.resume",
        absl::StrCat(resume,
                     " looks where the job saves, and with evaluate: "
                     "true nothing is saved; give the checkpoint's "
                     "directory, or the folder that it is in"));
  }
  const bool has_adapters =
      !resume.empty() || job.training().lora().has_adapter();
  if (!resume.empty() && job.training().lora().has_adapter()) {
    return FieldError("training.lora.adapter",
                      "is beside checkpoint.resume, whose adapters are "
                      "measured; leave one of them out");
  }
  if (!job.training().has_lora() || has_adapters) return absl::OkStatus();
  return FieldError("training.lora",
                    "new adapters change nothing that could be measured; give "
                    "checkpoint.resume, or leave it out");
}

// The scheduler keeps them all, and rank 0 reports those of a step at once.
absl::Status CheckSequenceLimits(const JobSpec& job) {
  if (!job.sequence_losses()) return absl::OkStatus();
  const int64_t batch = job.training().global_batch_size();
  const int64_t steps = job.training().steps();
  if (batch > kStepSequencesMax) {
    return FieldError(
        "training.global_batch_size",
        absl::StrCat(batch, " is more than ", kStepSequencesMax,
                     ", of which a step can say the losses one by one; use "
                     "less, or leave sequence_losses out"));
  }
  if (steps > kSequenceLossStepsMax) {
    return FieldError(
        "training.global_batch_size",
        absl::StrCat(batch, " makes ", steps, " steps, and with ",
                     "sequence_losses a job has at most ",
                     kSequenceLossStepsMax, "; use a larger one"));
  }
  if (steps <= 0 || batch <= kSequenceLossesMax / steps) {
    return absl::OkStatus();
  }
  return FieldError(
      "sequence_losses",
      absl::StrCat("are at most ", kSequenceLossesMax, " of a job, and ", steps,
                   " steps of ", batch,
                   " are more; evaluate data.validation in parts"));
}

}  // namespace

absl::Status ResolveEvaluation(JobSpec& job) {
  if (!job.has_evaluate()) job.set_evaluate(false);
  if (!job.has_sequence_losses()) job.set_sequence_losses(false);
  if (!job.evaluate()) {
    if (!job.sequence_losses()) return absl::OkStatus();
    return FieldError("sequence_losses",
                      "are those of a job with evaluate: true; leave it out");
  }
  if (IsSynthetic(job.model())) {
    return FieldError("evaluate",
                      "a synthetic model has no loss to measure; leave it out");
  }
  const JobSpec neutral = WithoutTraining(job);
  RETURN_IF_ERROR(RefuseTraining("", job, neutral));
  if (job.memory().has_mode()) {
    return FieldError("memory",
                      "auto chooses among settings of training; with evaluate: "
                      "true, leave it out");
  }
  RETURN_IF_ERROR(CheckWeights(job));
  RETURN_IF_ERROR(CheckPresent({.present = !job.data().validation().empty(),
                                .path = "data.validation",
                                .meaning = "the token file to evaluate on"}));
  if (!job.training().has_steps()) {
    return FieldError("training.steps",
                      "is counted by `troupe`, which reads the size of "
                      "data.validation; submit the job with it, or give as "
                      "many as the file has windows over "
                      "training.global_batch_size, rounded up");
  }
  RETURN_IF_ERROR(CheckSequenceLimits(job));
  job.MergeFrom(neutral);
  return absl::OkStatus();
}

}  // namespace troupe
