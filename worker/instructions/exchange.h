// EXCHANGE: what ranks need of one another within a unit.
//
// Rows of tokens that go to their experts, or come back (Op.round), are blocks
// as large as the operand SIZES says, the table of all ranks' offsets. The host
// reads it in each exchange. Where it lies on a GPU, that is a copy of 4 bytes
// for each rank and expert: some 10 us, and the lane's thread waits until its
// stream has done what stands before. A layer with one round has three such
// exchanges forward (rows, gates, back) and three backward.
#ifndef TROUPE_WORKER_INSTRUCTIONS_EXCHANGE_H_
#define TROUPE_WORKER_INSTRUCTIONS_EXCHANGE_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunExchange(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_EXCHANGE_H_
