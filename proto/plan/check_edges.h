// A part of CheckUnits: the graph that the units are.
#ifndef TROUPE_PROTO_PLAN_CHECK_EDGES_H_
#define TROUPE_PROTO_PLAN_CHECK_EDGES_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition "unit 3: its input 1 is ...": a unit reads outputs of
// units before it, of the same dims and type, and each output has one reader.
// REQUIRES tables whose tensors and operands are right.
absl::Status CheckEdges(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_EDGES_H_
