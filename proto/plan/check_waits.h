// The part of check_program that is about several ranks: members of a group
// enter the same collectives in the same order, what one rank sends another its
// peer receives in the same order, and running all ranks together never comes
// to a point where each waits for another.
#ifndef TROUPE_PROTO_PLAN_CHECK_WAITS_H_
#define TROUPE_PROTO_PLAN_CHECK_WAITS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// REQUIRES CheckShape. FailedPrecondition: says which rank waits for which, and
// in what.
absl::Status CheckWaits(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_WAITS_H_
