// What a model consists of: its units with their parameters, the floating-point
// operations and the bytes of a pass over one micro-batch. Arithmetic only: the
// scheduler plans with it, and the worker's layers are tested against it, so a
// number here and what a layer allocates are the same number.
#ifndef TROUPE_PROTO_PLAN_MODEL_H_
#define TROUPE_PROTO_PLAN_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// The shape of one micro-batch on one rank.
struct MicroBatchShape {
  int64_t sequences = 0;
  int64_t sequence_length = 0;
};

// The units of `model`, in order: EMBEDDING, BLOCK 0..L-1, HEAD. Parameters
// carry Hugging Face's names and shapes, their initialisation and the offset in
// their unit's flat buffer (each starts on a multiple of kFlatAlignment
// elements). A tied vocabulary projection belongs to the embedding; the head
// names it under `tied`.
//
// REQUIRES a resolved model (every field set). InvalidArgument, beginning with
// the field's path ("model.hidden_size: ..."), where sizes do not fit together.
absl::StatusOr<std::vector<Unit>> ModelUnits(const ModelSpec& model,
                                             const MicroBatchShape& shape);

// Flat buffers keep every tensor on a cache line: 16 f32 elements, 64 bytes.
inline constexpr int64_t kFlatAlignment = 16;

// Number of trained scalars, tied ones once, alignment gaps left out.
int64_t ParameterCount(const std::vector<Unit>& units);

// Model FLOPs of training one token, forward and backward:
//   6 N + 12 L C T
// (PaLM, arXiv 2204.02311, appendix B), N counting all parameters but tables
// that are only looked up: the position embedding, and the token embedding where
// the projection has a table of its own; a tied one counts once.
// Attention is counted in full, the causally masked half included.
double ModelFlopsPerToken(const ModelSpec& model, int64_t sequence_length);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MODEL_H_
