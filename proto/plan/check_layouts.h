// Whether the tensors of a plan's units lie over ranks as the ops that make and
// read them need it: a summand is never read as a whole, a slice never as
// another, and what stands between two layouts is the exchange that turns one
// into the other, in both directions. Units may share their ranks in different
// ways; what they hand to one another they have alike.
#ifndef TROUPE_PROTO_PLAN_CHECK_LAYOUTS_H_
#define TROUPE_PROTO_PLAN_CHECK_LAYOUTS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition names table, op and tensor. REQUIRES tables whose ops have
// the operands of their kinds (check_units.h).
absl::Status CheckLayouts(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_LAYOUTS_H_
