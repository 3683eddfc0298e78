// The first words on the connections of a group: each pair proves to each other
// that both belong to it (proof.h). Until all have, no memory of a tensor is
// named to Gloo, and Gloo puts bytes nowhere else than into memory that was
// named to it; so a stranger that came in a member's place, and that may speak
// as Gloo does, reaches 64 bytes of a proof.
//
// The first peer to dial has a rank's place: Gloo listens once for each pair. A
// stranger can so keep a group from meeting, and is told of in the log.
#ifndef TROUPE_WORKER_COLLECTIVE_GLOO_PROVE_MEMBERS_H_
#define TROUPE_WORKER_COLLECTIVE_GLOO_PROVE_MEMBERS_H_

#include <gloo/context.h>

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

// For a member to prove itself, once it is connected. One that is paused for
// longer cannot join.
inline constexpr absl::Duration kProofMax = absl::Seconds(10);

// REQUIRES: all pairs of the context are connected. Errors: Unavailable, with
// the global rank whose place is taken by a stranger, or that is gone; that
// of the seat's abort.
absl::Status ProveMembers(::gloo::Context& context,
                          const CommunicatorSeat& seat,
                          const std::string& secret, absl::Time deadline);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_GLOO_PROVE_MEMBERS_H_
