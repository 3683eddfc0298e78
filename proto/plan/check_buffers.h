// The part of check_program that is about memory: each byte that an instruction
// reads is of a buffer that has been written, by instructions that are certainly
// done, and none of another has been written over it since; what it writes,
// nobody still uses. It follows what each byte of memory holds, and knows
// nothing of how buffers were packed.
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
