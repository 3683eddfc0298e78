// How the members of a group learn where each of them listens for this rank.
//
// Gloo listens once for each pair, so a rank has an address for each of its
// n - 1 peers, and of each peer's addresses only one is meant for it. If all
// fetched what all publish, a group would move n^3 addresses: of 136 bytes
// each, 146 GB for 1,024 ranks. So the group's first rank, to which everybody
// sends what it has, hands everybody what is meant for it:
//
//   rank r      sets  GROUP/gloo/r        its host, and a port for each peer
//   rank 0      gets  those of all
//               sets  GROUP/gloo/hosts    a secret, the hosts of all
//               sets  GROUP/gloo/ports/r  each peer's port for r
//   rank r      gets  these two
//
// All addresses of a rank have one host, so a port (2 bytes) is what differs: a
// rank moves 20 bytes for each peer, and the first rank 4 more for each pair.
//
// The secret is 256 random bits that the first rank draws. The store is the
// scheduler's: it gives to ranks of this attempt only, over TLS, what ranks of
// this attempt have set. So a peer that knows the secret is a member (proof.h).
//
// Where a member does not come in time, the first rank says so in place of the
// answers, and all name the same one.
#ifndef TROUPE_WORKER_COLLECTIVE_GLOO_INTRODUCE_H_
#define TROUPE_WORKER_COLLECTIVE_GLOO_INTRODUCE_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

// Of IPv4 or IPv6, by index in the group; at this rank's own place zeros.
using ListeningSockets = std::vector<sockaddr_storage>;

struct GroupIntroduction {
  ListeningSockets sockets;
  std::string secret;  // of the group, in this attempt
};

// `own` says where this rank listens for each peer, the result's sockets where
// each peer listens for this rank. Errors: those of the store; DeadlineExceeded
// names the global rank that did not come.
absl::StatusOr<GroupIntroduction> Introduce(const CommunicatorSeat& seat,
                                            const ListeningSockets& own,
                                            absl::Time deadline);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_GLOO_INTRODUCE_H_
