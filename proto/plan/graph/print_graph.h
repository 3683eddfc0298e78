// Units as the text of a model graph (docs/graph.md): what `troupe plan
// --units` prints, and GraphUnits reads back to the same units.
#ifndef TROUPE_PROTO_PLAN_GRAPH_PRINT_GRAPH_H_
#define TROUPE_PROTO_PLAN_GRAPH_PRINT_GRAPH_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/plan/unit_list.h"

namespace troupe {

struct GraphSizes {
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
};

// Of units as ModelUnits makes them, for f32 and with dropout, so that its ops
// are there; neither cut over ranks nor frozen. Units behind one another that
// differ in their number only are one that is repeated. InvalidArgument: a unit
// has no ops, or some that no graph has.
absl::StatusOr<std::string> PrintGraph(const UnitList& units,
                                       const GraphSizes& sizes);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_GRAPH_PRINT_GRAPH_H_
