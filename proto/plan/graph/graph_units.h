// The units that a model graph describes.
//
//   ASSIGN_OR_RETURN(const GraphText text, ParseGraphText("my.graph", file));
//   ASSIGN_OR_RETURN(UnitList units, GraphUnits(text, shape));
#ifndef TROUPE_PROTO_PLAN_GRAPH_GRAPH_UNITS_H_
#define TROUPE_PROTO_PLAN_GRAPH_GRAPH_UNITS_H_

#include "absl/status/statusor.h"
#include "proto/plan/graph/graph_text.h"
#include "proto/plan/micro_batch.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// InvalidArgument "my.graph:12: op linear of unit block.0 reads tensor \"h\",
// which no op before it makes": whatever is wrong is refused with its line. The
// units are such that CheckUnits accepts them.
absl::StatusOr<UnitList> GraphUnits(const GraphText& text,
                                    const MicroBatchShape& shape);

// How many units it has.
absl::StatusOr<int> GraphUnitCount(const GraphText& text);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_GRAPH_GRAPH_UNITS_H_
