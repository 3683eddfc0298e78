// Checks what a plan keeps for the recovery of its job (copies.h).
#ifndef TROUPE_PROTO_PLAN_CHECK_COPIES_H_
#define TROUPE_PROTO_PLAN_CHECK_COPIES_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition, unless every role has a KEEP program where the job asks
// for copies, and none otherwise; each copies every unit that its role holds
// once, whole, to a place of its own; and where some rank's state is held by no
// other, all of them hand their copies on, once, when they are complete.
// REQUIRES CheckShape.
absl::Status CheckCopies(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_COPIES_H_
