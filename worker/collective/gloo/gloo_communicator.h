// Communicators over TCP, on Debian's libgloo: its connections and its
// unbuffered send and receive. The collectives on top are ours (ring.h,
// exchange.h), as Gloo's ring reaches a fraction of what its send and receive
// do, and because a wait for one known peer tells which is missing (wires.h).
//
// Each communicator has its own connections and two threads: Gloo's, which
// moves bytes, and the watch. Neither spins. Calls block in condition
// variables.
#ifndef TROUPE_WORKER_COLLECTIVE_GLOO_GLOO_COMMUNICATOR_H_
#define TROUPE_WORKER_COLLECTIVE_GLOO_GLOO_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<Communicator>> CreateGloo(
    const CommunicatorSeat& seat);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_GLOO_GLOO_COMMUNICATOR_H_
