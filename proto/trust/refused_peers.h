// One line of the log for each peer that is not let in, whatever was wrong with
// it. A flood of them is counted, not written: 20 lines in ten seconds at each
// door, so that a flood at one hides nobody at another.
#ifndef TROUPE_PROTO_TRUST_REFUSED_PEERS_H_
#define TROUPE_PROTO_TRUST_REFUSED_PEERS_H_

#include "absl/strings/string_view.h"

namespace troupe {

// Where it came to.
enum class Door {
  kGrpc,
  kHttp,
  kRanks,    // the data ports of a group
  kWorkers,  // the registration of a worker, which tries again and again
};

// "refused a peer: <what>". Thread-safe.
void TellOfRefusedPeer(Door door, absl::string_view what);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_REFUSED_PEERS_H_
