// Part of check_program: what rests in slices (ZeRO) is whole where somebody
// computes with it, and every gradient gets into one slice, once.
#ifndef TROUPE_PROTO_PLAN_CHECK_AT_REST_H_
#define TROUPE_PROTO_PLAN_CHECK_AT_REST_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// REQUIRES CheckShape and CheckWork. FailedPrecondition: a unit dealt over
// ranks that do not deal it alike; a buffer that is a slice of a unit that is
// not dealt, of another size, or one that has to be a slice and is not; a pass
// that computes with parameters that were not gathered since they changed; a
// gather or scatter in another group than that of the unit; gradients that are
// summed into slices twice, not at all or before their last addend, or are used
// before they are.
absl::Status CheckAtRest(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_AT_REST_H_
