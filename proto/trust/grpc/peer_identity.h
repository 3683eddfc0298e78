// The peer at the other end of a call: what its certificate says.
#ifndef TROUPE_PROTO_TRUST_GRPC_PEER_IDENTITY_H_
#define TROUPE_PROTO_TRUST_GRPC_PEER_IDENTITY_H_

#include <string>
#include <vector>

#include "grpcpp/security/auth_context.h"

namespace troupe {

struct PeerIdentity {
  bool has_certificate = false;  // it showed one, and is the peer it names
  // The common name, without the role before it that `troupe cluster
  // certificate` writes there: "ada". Empty: there is none.
  std::string name;
  // The names that a worker may have (worker_names.h).
  std::vector<std::string> worker_names;
};

PeerIdentity IdentityOf(const grpc::AuthContext& context);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_GRPC_PEER_IDENTITY_H_
