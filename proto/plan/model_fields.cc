#include "proto/plan/model_fields.h"

#include "absl/strings/str_cat.h"
#include "proto/base/choices.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"

namespace troupe {
namespace {

constexpr int kVocabularyMax = 1 << 24;
constexpr int64_t kSequencesMax = 1 << 30;

}  // namespace

absl::Status CheckModelSizes(const ModelSpec& model) {
  struct Row {
    RequiredField field;
    int64_t value;
    int64_t max;
  };
  const Row rows[] = {
      {{model.has_num_hidden_layers(), "model.num_hidden_layers",
        "the number of blocks"},
       model.num_hidden_layers(),
       kModelLayersMax},
      {{model.has_hidden_size(), "model.hidden_size",
        "the width of the residual stream"},
       model.hidden_size(),
       kModelWidthMax},
      {{model.has_num_attention_heads(), "model.num_attention_heads",
        "a divisor of hidden_size"},
       model.num_attention_heads(),
       kModelWidthMax},
      {{model.has_vocab_size(), "model.vocab_size",
        "the number of tokens; 256 for the bytes tokenizer"},
       model.vocab_size(),
       kVocabularyMax},
      {{model.has_max_position_embeddings(), "model.max_position_embeddings",
        "the longest sequence"},
       model.max_position_embeddings(),
       kModelPositionsMax},
  };
  for (const Row& row : rows) RETURN_IF_ERROR(CheckPresent(row.field));
  for (const Row& row : rows) {
    RETURN_IF_ERROR(
        CheckInteger(row.field.path, row.value, {.min = 1, .max = row.max}));
  }
  return absl::OkStatus();
}

void SetModelDefaults(ModelSpec& model) {
  if (!model.has_intermediate_size()) {
    model.set_intermediate_size(4 * model.hidden_size());
  }
  if (!model.has_initializer_range()) model.set_initializer_range(0.02);
}

absl::Status CheckModelDefaults(const ModelSpec& model) {
  RETURN_IF_ERROR(CheckInteger("model.intermediate_size",
                               model.intermediate_size(),
                               {.min = 1, .max = 16 * kModelWidthMax}));
  return CheckNumber("model.initializer_range", model.initializer_range(),
                     {.min = 0, .max = 100});
}

absl::Status CheckHeadsDivideWidth(const ModelSpec& model) {
  const int64_t width = model.hidden_size();
  const int64_t heads = model.num_attention_heads();
  if (width % heads == 0) return absl::OkStatus();
  return FieldError("model.num_attention_heads",
                    absl::StrCat(heads, " does not divide model.hidden_size ",
                                 width, "; use ", DivisorsText(width, heads)));
}

LongestSequence LongestSequenceOf(const ModelSpec& model) {
  if (model.has_sliding_window() &&
      model.sliding_window() < model.max_position_embeddings()) {
    return {"model.sliding_window", model.sliding_window()};
  }
  return {"model.max_position_embeddings", model.max_position_embeddings()};
}

absl::Status CheckMicroBatch(const ModelSpec& model,
                             const MicroBatchShape& shape) {
  RETURN_IF_ERROR(CheckInteger("training.micro_batch_size", shape.sequences,
                               {.min = 1, .max = kSequencesMax}));
  return CheckInteger("training.sequence_length", shape.sequence_length,
                      {.min = 1, .max = LongestSequenceOf(model).positions});
}

}  // namespace troupe
