// EXCHANGE: what ranks need of one another within a unit.
#ifndef TROUPE_WORKER_INSTRUCTIONS_EXCHANGE_H_
#define TROUPE_WORKER_INSTRUCTIONS_EXCHANGE_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunExchange(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_EXCHANGE_H_
