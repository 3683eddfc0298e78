// The part of check_program that is about micro-batches: on every pipeline of
// the mesh each unit runs each micro-batch forward and backward exactly once,
// on whichever of its ranks, and backward with the weights that forward used,
// which must still be there.
#ifndef TROUPE_PROTO_PLAN_CHECK_PASSES_H_
#define TROUPE_PROTO_PLAN_CHECK_PASSES_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// REQUIRES CheckShape. FailedPrecondition: names the unit, the micro-batch and
// the ranks.
absl::Status CheckPasses(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_PASSES_H_
