// What a model consists of: its units with their parameters and ops, the
// floating-point operations and the bytes of a pass over one micro-batch. The
// scheduler plans with it, and workers carry the same ops out.
#ifndef TROUPE_PROTO_PLAN_MODEL_H_
#define TROUPE_PROTO_PLAN_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/micro_batch.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// Fills every field of the model that has a default. InvalidArgument, beginning
// with the field's path ("model.hidden_size: ..."), for a field that is missing
// or out of range, sizes that do not fit together, and fields of another
// architecture. Resolving twice is resolving once.
absl::Status ResolveModel(ModelSpec& model);

// The units of `model`, in order: EMBEDDING, BLOCK 0..L-1, HEAD, or as its
// graph has them, with the tables of what they do. Parameters carry Hugging
// Face's names and shapes, their initialisation and the offset in their unit's
// flat buffer (each starts on a multiple of kFlatAlignment elements). A tied
// vocabulary projection belongs to the embedding; the head names it under
// `tied`. Bytes and work are for `shape`.
//
// REQUIRES a resolved model. InvalidArgument, as ResolveModel, where it is not
// one, and where the shape does not fit it.
absl::StatusOr<UnitList> ModelUnits(const ModelSpec& model,
                                    const MicroBatchShape& shape);

// Of a model that waits instead of computing: it has no data and no loss.
bool IsSynthetic(const ModelSpec& model);

// Of a model that its user has written down (docs/graph.md).
bool IsGraph(const ModelSpec& model);

// How many units it has. REQUIRES a resolved model.
int UnitCount(const ModelSpec& model);

// The model as it is evaluated and as it writes text: without the modules that
// predict further tokens. Its units are the first ones of the model.
ModelSpec WithoutModules(ModelSpec model);

// Whether Hugging Face's files may have layers behind the last one: modules
// that predict further tokens (DeepSeek-V3, arXiv 2412.19437, section 2.2), of
// which the model takes as many as it says. REQUIRES a resolved model.
bool MayHaveLayersBehind(const ModelSpec& model);

int64_t ElementsOf(const Parameter& parameter);

// Number of trained scalars, tied ones once, alignment gaps and state of
// routers (Parameter.load) left out.
int64_t ParameterCount(const std::vector<Unit>& units);

// The same of what one token meets: of each layer's experts as many as it
// chooses. REQUIRES whole units.
int64_t ActiveParameterCount(const UnitList& list);

// Model FLOPs of training one token, forward and backward:
//   6 N + 12 L A T
// (PaLM, arXiv 2204.02311, appendix B), A being the width of all query heads
// together (hidden_size in most models; where heads of values have another
// width, the mean of both), N counting all parameters but tables
// that are only looked up: the position embedding, and the token embedding
// where the projection has a table of its own; a tied one counts once.
// Attention is counted in full, the causally masked half included.
double ModelFlopsPerToken(const ModelSpec& model, int64_t sequence_length);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MODEL_H_
