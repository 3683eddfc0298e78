// Part of check_program: what ranks add up. Each sum of Plan.sums has its own
// place in SCALARS, as large as all that add to it say; FORWARD adds to the
// sums that the ops of its segment name, GRAD_NORM to the squared norm, and
// nobody to others; what a program has added, all ranks sum at its end, or,
// where steps are summed late, later.
#ifndef TROUPE_PROTO_PLAN_CHECK_SUMS_H_
#define TROUPE_PROTO_PLAN_CHECK_SUMS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition: says which sum, rank, program and instruction. REQUIRES a
// plan that CheckUnits and CheckShape have seen.
absl::Status CheckSums(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_SUMS_H_
