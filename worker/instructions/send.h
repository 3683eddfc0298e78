// SEND: gives the output of this rank's stage for a micro-batch to the rank
// that has the next one, or its gradient back to the rank that has the one
// before.
#ifndef TROUPE_WORKER_INSTRUCTIONS_SEND_H_
#define TROUPE_WORKER_INSTRUCTIONS_SEND_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunSend(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_SEND_H_
