// Checks that modules predict the tokens that they are to predict, and count as
// much as the job says (DeepSeek-V3, arXiv 2412.19437, section 2.2).
#ifndef TROUPE_PROTO_PLAN_CHECK_MODULES_H_
#define TROUPE_PROTO_PLAN_CHECK_MODULES_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition, naming unit and op, unless as many units as the job has
// modules add a loss to the model's, the k-th of them of targets k places
// further, each with its share of the job's coefficient; and unless the batch
// has tokens k places further for each k. A plan without modules has neither.
// REQUIRES CheckUnits and CheckBatch.
absl::Status CheckModules(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_MODULES_H_
