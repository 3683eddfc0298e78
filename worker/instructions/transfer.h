// What SEND and RECV have in common: which memory moves, between which ranks.
// It is ACTIVATION(u, m), or GRADIENT(u, m) where the instruction says so, of
// the last unit u of the stage that comes first (docs/plan.md).
#ifndef TROUPE_WORKER_INSTRUCTIONS_TRANSFER_H_
#define TROUPE_WORKER_INSTRUCTIONS_TRANSFER_H_

#include "worker/collective/communicator.h"
#include "worker/instructions/call.h"

namespace troupe {

struct Transfer {
  Communicator& communicator;  // of the instruction's group
  CommBuffer data;             // bytes, whatever they stand for
  int peer = 0;                // index into the communicator's group
  CommOptions options;         // "activations of unit 3, micro-batch 1"
};

// REQUIRES a SEND or a RECV.
Transfer TransferOf(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_TRANSFER_H_
