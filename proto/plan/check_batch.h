// The batch of a plan is what its units read: each tensor of the schema has a
// source that makes such tensors, and lies over ranks as those that read it
// have it; and what an op reads of it is of the rows that the op computes.
#ifndef TROUPE_PROTO_PLAN_CHECK_BATCH_H_
#define TROUPE_PROTO_PLAN_CHECK_BATCH_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition naming the tensor and the unit, or the op. REQUIRES
// CheckUnits.
absl::Status CheckBatch(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_BATCH_H_
