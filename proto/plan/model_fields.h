// The fields of a model that every architecture has, and their checks.
// InvalidArgument begins with the field's path and says the way out, as
// fields.h.
#ifndef TROUPE_PROTO_PLAN_MODEL_FIELDS_H_
#define TROUPE_PROTO_PLAN_MODEL_FIELDS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan/micro_batch.h"

namespace troupe {

inline constexpr int kModelLayersMax = 4096;
inline constexpr int kModelWidthMax = 1 << 16;
inline constexpr int kModelPositionsMax = 1 << 24;

// Layers, widths, heads, vocabulary and positions, which have no default:
// present and within bounds.
absl::Status CheckModelSizes(const ModelSpec& model);

// Fills intermediate_size and initializer_range. REQUIRES CheckModelSizes.
void SetModelDefaults(ModelSpec& model);

// What SetModelDefaults fills, within bounds.
absl::Status CheckModelDefaults(const ModelSpec& model);

// Whether num_attention_heads divides hidden_size.
absl::Status CheckHeadsDivideWidth(const ModelSpec& model);

// The longest sequence that the model reads, and the field that says so:
// max_position_embeddings or, where that is shorter, the sliding window. Within
// it attention sees every position, as ours always does.
struct LongestSequence {
  const char* field;
  int positions;
};
LongestSequence LongestSequenceOf(const ModelSpec& model);

// Whether the micro-batch has a size, and its sequences fit the model.
absl::Status CheckMicroBatch(const ModelSpec& model,
                             const MicroBatchShape& shape);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MODEL_FIELDS_H_
