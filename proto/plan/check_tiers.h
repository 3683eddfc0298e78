// The part of check_program that is about tiers of memory: instructions find
// their operands in the tier in which they use them; moves copy a value between
// neighbouring tiers, all of it; and each reader of a value reads what was
// written to it last, wherever that was: no copy is used that is older, and no
// change stays in a copy. Gradients of a step are a sum of their own, wherever
// the optimizer is.
#ifndef TROUPE_PROTO_PLAN_CHECK_TIERS_H_
#define TROUPE_PROTO_PLAN_CHECK_TIERS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// REQUIRES CheckShape. FailedPrecondition: names the instruction and the value.
absl::Status CheckTiers(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_TIERS_H_
