// CLAIM: a replica takes the step that the program runs for, unless another
// has, and pulls the parameters of all units from their servers. Where another
// has it, nothing else of the program is done (RankState.skips).
#ifndef TROUPE_WORKER_INSTRUCTIONS_CLAIM_H_
#define TROUPE_WORKER_INSTRUCTIONS_CLAIM_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunClaim(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_CLAIM_H_
