// Checks where rows of tokens are on their way to experts and back.
#ifndef TROUPE_PROTO_PLAN_CHECK_EXPERTS_H_
#define TROUPE_PROTO_PLAN_CHECK_EXPERTS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition, naming table and op, unless each layer's rows meet the
// experts that their offsets are of, with the gates of their own choices, and
// are combined once: in the order of experts where weights are applied, in that of sources
// where they move, each round's behind those of the rounds before, and all
// rounds together with room for whatever the router says. Where axes cut the
// experts, they do so in the order of the mesh, each rank has as many, and rows
// are exchanged along all of these axes. Where axes cut sequences, room of
// experts is given out by the counts of all ranks along these. REQUIRES
// CheckUnits and CheckLayouts.
absl::Status CheckExperts(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_EXPERTS_H_
