// One line of the log for each peer that is not let in, whatever was wrong with
// it: no TLS, no certificate, one of another authority, one whose time is over,
// another role, half a handshake, garbage. A flood of them is counted, not
// written.
#ifndef TROUPE_TRUST_GRPC_REFUSED_PEERS_H_
#define TROUPE_TRUST_GRPC_REFUSED_PEERS_H_

#include "absl/strings/string_view.h"

namespace troupe {

// From now on what gRPC says goes to our log: failed handshakes as above, its
// errors as they are, the rest nowhere. Thread-safe; does so once.
void LogRefusedPeers();

// For what is found after the handshake. Thread-safe.
void TellOfRefusedPeer(absl::string_view what);

}  // namespace troupe

#endif  // TROUPE_TRUST_GRPC_REFUSED_PEERS_H_
