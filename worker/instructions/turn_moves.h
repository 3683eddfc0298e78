// What CLAIM, DELIVER and ADMIT move between a replica and the servers of its
// units, and what they read and write in SCALARS.
#ifndef TROUPE_WORKER_INSTRUCTIONS_TURN_MOVES_H_
#define TROUPE_WORKER_INSTRUCTIONS_TURN_MOVES_H_

#include <string>

#include "absl/status/status.h"
#include "worker/instructions/call.h"
#include "worker/rank/turn_log.h"

namespace troupe {

enum class TurnMove { kSend, kReceive };

// Of a replica: of each buffer that has this part, what each server keeps of
// its unit, to or from that server.
absl::Status MoveWithServers(const Call& call, Instruction::Part part,
                             TurnMove move, const std::string& what);
// Of a server: its slices, to or from the replica at this place on "data".
absl::Status MoveWithReplica(const Call& call, Instruction::Part part,
                             TurnMove move, int replica,
                             const std::string& what);

// What this rank was asked for before the step.
TurnLog::Asked AskedOf(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_TURN_MOVES_H_
