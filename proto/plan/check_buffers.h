// The part of check_program that is about memory: what an instruction reads has
// been written, by an instruction that is certainly done, and nothing has been
// written over it since; what it writes, nobody still uses.
#ifndef TROUPE_PROTO_PLAN_CHECK_BUFFERS_H_
#define TROUPE_PROTO_PLAN_CHECK_BUFFERS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// REQUIRES CheckShape. FailedPrecondition: names both instructions and the
// slot.
absl::Status CheckBuffers(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_BUFFERS_H_
