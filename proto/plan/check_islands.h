// That islands train by themselves and exchange all that they learn
// (proto/plan/islands.h).
#ifndef TROUPE_PROTO_PLAN_CHECK_ISLANDS_H_
#define TROUPE_PROTO_PLAN_CHECK_ISLANDS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition: the mesh is not of the job's islands; something but an
// exchange, an agreement or a validation meets ranks of other islands; a unit
// that a role steps is not exchanged once, in the steps of its fragment, in the
// order change, sum, outer step, over the same place of all islands, behind its
// STEP, or, hidden behind a step, around it, and then once more in the last
// one; islands do not agree in those steps whether to stop; anything else is
// left out of some steps. REQUIRES CheckShape.
absl::Status CheckIslands(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_ISLANDS_H_
