// Whether what a plan says of the parts of its units' flat buffers is so. Parts
// of a unit share buffers, so their types and tiers are the same. Replicas hold
// all of each part. Within a stage, which ranks have the same of a parameter
// follows from how its dims are cut, and whether what each has of its gradient
// is a summand from how the tensors lie that the gradient is made of. By that
// gradients are summed, over the right ranks, once (check_work.h).
#ifndef TROUPE_PROTO_PLAN_CHECK_PARTS_H_
#define TROUPE_PROTO_PLAN_CHECK_PARTS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition names unit, part and parameter. REQUIRES CheckUnits,
// CheckLayouts and CheckShape.
absl::Status CheckParts(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_PARTS_H_
