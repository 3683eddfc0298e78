// The tensors of the batch that a model graph reads: those that it declares,
// or, where it declares none, tokens and the tokens behind them. A part of
// GraphUnits.
#ifndef TROUPE_PROTO_PLAN_GRAPH_GRAPH_BATCH_H_
#define TROUPE_PROTO_PLAN_GRAPH_GRAPH_BATCH_H_

#include "absl/status/statusor.h"
#include "proto/plan/batch.h"
#include "proto/plan/graph/graph_text.h"
#include "proto/plan/micro_batch.h"

namespace troupe {

// How ops read them: "batch:tokens".
inline constexpr char kBatchPrefix[] = "batch:";

// InvalidArgument with the line: names that are missing, or there twice, and
// tensors that no source makes.
absl::StatusOr<BatchSchema> ReadGraphBatch(const GraphText& text,
                                           const MicroBatchShape& shape);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_GRAPH_GRAPH_BATCH_H_
