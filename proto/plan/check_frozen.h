// That a plan says of its parameters what training.freeze says, and leaves out
// only what these do not need.
#ifndef TROUPE_PROTO_PLAN_CHECK_FROZEN_H_
#define TROUPE_PROTO_PLAN_CHECK_FROZEN_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// Parameters that match are frozen, and no others; a part's all are, or none;
// trained parts come first; ops of the tables say the same of what they use;
// and every tensor that is made with a trained parameter, or of such a tensor,
// has a gradient. REQUIRES check_units. FailedPrecondition otherwise.
absl::Status CheckFrozen(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_FROZEN_H_
