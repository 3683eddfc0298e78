#include "scheduler/planner/resolve.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "scheduler/planner/fields.h"
#include "scheduler/planner/resolve_training.h"

namespace troupe {
namespace {

constexpr size_t kNameLengthMax = 100;
constexpr int kLayersMax = 4096;
constexpr int kHiddenMax = 1 << 16;
constexpr int kVocabularyMax = 1 << 24;
constexpr int kPositionsMax = 1 << 24;
constexpr int kReplicasMax = 1024;
constexpr double kBucketMegabytesMax = 1 << 20;

absl::Status CheckJobName(absl::string_view name) {
  RETURN_IF_ERROR(CheckPresent(
      {.present = !name.empty(), .path = "name", .meaning = "the job a name"}));
  bool printable = name.size() <= kNameLengthMax;
  for (const char c : name) {
    printable = printable && !absl::ascii_iscntrl(c);
  }
  if (printable) return absl::OkStatus();
  return FieldError("name", absl::StrCat("use at most ", kNameLengthMax,
                                         " printable characters"));
}

absl::Status CheckModelPresent(const ModelSpec& model) {
  const RequiredField fields[] = {
      {model.has_num_hidden_layers(), "model.num_hidden_layers",
       "the number of blocks"},
      {model.has_hidden_size(), "model.hidden_size",
       "the width of the residual stream"},
      {model.has_num_attention_heads(), "model.num_attention_heads",
       "a divisor of hidden_size"},
      {model.has_vocab_size(), "model.vocab_size",
       "the number of tokens; 256 for the bytes tokenizer"},
      {model.has_max_position_embeddings(), "model.max_position_embeddings",
       "the longest sequence"},
  };
  for (const RequiredField& field : fields)
    RETURN_IF_ERROR(CheckPresent(field));
  return absl::OkStatus();
}

absl::Status CheckModelRanges(const ModelSpec& model) {
  struct Row {
    absl::string_view path;
    int64_t value;
    int64_t max;
  };
  const Row rows[] = {
      {"model.num_hidden_layers", model.num_hidden_layers(), kLayersMax},
      {"model.hidden_size", model.hidden_size(), kHiddenMax},
      {"model.num_attention_heads", model.num_attention_heads(), kHiddenMax},
      {"model.vocab_size", model.vocab_size(), kVocabularyMax},
      {"model.max_position_embeddings", model.max_position_embeddings(),
       kPositionsMax},
      {"model.intermediate_size", model.intermediate_size(), 16 * kHiddenMax},
  };
  for (const Row& row : rows) {
    RETURN_IF_ERROR(
        CheckInteger(row.path, row.value, {.min = 1, .max = row.max}));
  }
  RETURN_IF_ERROR(CheckNumber("model.layer_norm_epsilon",
                              model.layer_norm_epsilon(),
                              {.min = 0, .max = 1, .min_open = true}));
  return CheckNumber("model.initializer_range", model.initializer_range(),
                     {.min = 0, .max = 100});
}

absl::Status ResolveModel(ModelSpec& model) {
  RETURN_IF_ERROR(CheckPresent({.present = !model.architecture().empty(),
                                .path = "model.architecture",
                                .meaning = "gpt2"}));
  RETURN_IF_ERROR(
      CheckName("model.architecture", model.architecture(), {"gpt2"}));
  RETURN_IF_ERROR(CheckModelPresent(model));
  if (!model.has_intermediate_size()) {
    RETURN_IF_ERROR(CheckInteger("model.hidden_size", model.hidden_size(),
                                 {.min = 1, .max = kHiddenMax}));
    model.set_intermediate_size(4 * model.hidden_size());
  }
  if (!model.has_layer_norm_epsilon()) model.set_layer_norm_epsilon(1e-5);
  if (!model.has_initializer_range()) model.set_initializer_range(0.02);
  if (!model.has_tie_word_embeddings()) model.set_tie_word_embeddings(true);
  RETURN_IF_ERROR(CheckModelRanges(model));
  if (model.hidden_size() % model.num_attention_heads() != 0) {
    return FieldError(
        "model.num_attention_heads",
        absl::StrCat(
            model.num_attention_heads(), " does not divide model.hidden_size ",
            model.hidden_size(), "; use ",
            DivisorsText(model.hidden_size(), model.num_attention_heads())));
  }
  return absl::OkStatus();
}

absl::Status ResolveData(DataSpec& data) {
  RETURN_IF_ERROR(
      CheckPresent({.present = !data.tokens().empty(),
                    .path = "data.tokens",
                    .meaning = "a file made by `troupe data prepare`"}));
  if (!data.has_validation_fraction()) data.set_validation_fraction(0);
  return CheckNumber("data.validation_fraction", data.validation_fraction(),
                     {.min = 0, .max = 1, .max_open = true});
}

absl::Status ResolveParallelism(ParallelismSpec& parallelism) {
  if (!parallelism.has_data()) parallelism.set_data(1);
  if (!parallelism.has_bucket_megabytes()) parallelism.set_bucket_megabytes(25);
  RETURN_IF_ERROR(CheckInteger("parallelism.data", parallelism.data(),
                               {.min = 1, .max = kReplicasMax}));
  return CheckNumber("parallelism.bucket_megabytes",
                     parallelism.bucket_megabytes(),
                     {.min = 0, .max = kBucketMegabytesMax, .min_open = true});
}

absl::Status ResolveCheckpoint(CheckpointSpec& checkpoint, int64_t steps) {
  if (!checkpoint.has_directory()) checkpoint.set_directory("");
  if (!checkpoint.has_every()) checkpoint.set_every(0);
  if (!checkpoint.has_keep()) checkpoint.set_keep(3);
  if (!checkpoint.has_resume()) checkpoint.set_resume("");
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
  if (checkpoint.resume() == "latest") {
    return FieldError("checkpoint.resume",
                      "latest is looked for in checkpoint.directory, which is "
                      "missing; give it, or resume from a directory");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<JobSpec> ResolveJob(const JobSpec& job) {
  JobSpec resolved = job;
  RETURN_IF_ERROR(CheckJobName(job.name()));
  RETURN_IF_ERROR(ResolveModel(*resolved.mutable_model()));
  RETURN_IF_ERROR(ResolveData(*resolved.mutable_data()));
  RETURN_IF_ERROR(ResolveParallelism(*resolved.mutable_parallelism()));
  RETURN_IF_ERROR(ResolveTraining(resolved));
  RETURN_IF_ERROR(ResolveOptimizer(resolved));
  RETURN_IF_ERROR(ResolveLrScheduler(resolved));
  RETURN_IF_ERROR(ResolveCheckpoint(*resolved.mutable_checkpoint(),
                                    resolved.training().steps()));
  return resolved;
}

}  // namespace troupe
