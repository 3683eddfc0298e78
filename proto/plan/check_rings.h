// Checks what rings of ranks do in place of one attention.
#ifndef TROUPE_PROTO_PLAN_CHECK_RINGS_H_
#define TROUPE_PROTO_PLAN_CHECK_RINGS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition, naming table and op, unless attention has all keys of a
// sequence, or is a chain of parts that meet the keys of each rank of an axis
// once, going on from one another, in zigzag order; and what is brought back is
// there to be sent. REQUIRES CheckUnits and CheckLayouts.
absl::Status CheckRings(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_RINGS_H_
