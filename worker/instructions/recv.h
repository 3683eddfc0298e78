// RECV: the other end of a SEND. Fills an ACTIVATION or a GRADIENT of this rank
// with what a neighbour in the pipeline computed.
#ifndef TROUPE_WORKER_INSTRUCTIONS_RECV_H_
#define TROUPE_WORKER_INSTRUCTIONS_RECV_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunRecv(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_RECV_H_
