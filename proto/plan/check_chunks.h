// Heads that compute their loss in chunks of rows (Op.chunk): the chunks of a
// table are all rows, each once, and each does what the others do; and in
// training a chunk has gone back before the next goes forward, as their values
// lie in the same place. A part of CheckPrograms (check_program.h).
#ifndef TROUPE_PROTO_PLAN_CHECK_CHUNKS_H_
#define TROUPE_PROTO_PLAN_CHECK_CHUNKS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition with the table or the instruction, and what is wrong.
// REQUIRES CheckUnits.
absl::Status CheckChunks(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_CHUNKS_H_
