// Those that knock at a port of TLS without gRPC: plain sockets, and OpenSSL's
// client with whatever one wants to show. The scheduler must hang up.
#ifndef TROUPE_TESTS_PROTO_TRUST_GRPC_STRANGER_H_
#define TROUPE_TESTS_PROTO_TRUST_GRPC_STRANGER_H_

#include <string>

#include "absl/time/time.h"
#include "proto/trust/peer_trust.h"

namespace troupe {

// How long it took until the other side hung up on one that said this and then
// nothing; infinite where that takes longer than ten seconds. What it answered
// is not looked at.
absl::Duration HungUpAfter(int port, const std::string& said);

struct TlsStranger {
  int port = 0;
  PeerTrust shows;          // no certificate where it has no files
  int version_max = 0;      // TLS1_2_VERSION; 0: what OpenSSL has
  bool reads_first = true;  // whether it waits for a word after its handshake
};
// The version that was agreed upon, "TLSv1.3"; "" where the other side refused,
// which with TLS 1.3 it may say after the handshake.
std::string AgreedVersion(const TlsStranger& stranger);

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_TRUST_GRPC_STRANGER_H_
