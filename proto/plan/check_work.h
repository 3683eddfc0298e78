// The part of check_program that is about training itself: nothing is lost and
// nothing is done twice. Every unit runs every micro-batch forward and backward
// once; every gradient is summed over its replicas once, after its last addend,
// and counted once in the norm; every parameter has an owner that steps it, and
// each element of it one rank that saves it.
#ifndef TROUPE_PROTO_PLAN_CHECK_WORK_H_
#define TROUPE_PROTO_PLAN_CHECK_WORK_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// REQUIRES CheckShape. FailedPrecondition.
absl::Status CheckWork(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_WORK_H_
