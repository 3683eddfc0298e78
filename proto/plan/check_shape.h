// The first part of check_program, on which the others rely: every index points
// at something and every instruction has what its kind needs.
#ifndef TROUPE_PROTO_PLAN_CHECK_SHAPE_H_
#define TROUPE_PROTO_PLAN_CHECK_SHAPE_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition: names the rank, the program and the instruction.
absl::Status CheckShape(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_SHAPE_H_
