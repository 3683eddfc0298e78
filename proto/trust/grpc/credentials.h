// gRPC's credentials for both ends of a connection: TLS 1.3, each side with a
// certificate that the other's authority signed. Nothing else in the tree makes
// any, so nothing else needs to know whether there is TLS.
//
//   ASSIGN_OR_RETURN(auto credentials,
//                    ChannelCredentials(trust, PeerRole::kWorker, address));
//   grpc::CreateCustomChannel(address, credentials, arguments);
//
// A client believes only a scheduler. A server looks at each RPC: its peer must
// have the role that the RPC is for. Hosts' names are not compared:
// an authority is of one cluster, and what it signs says what the holder is.
//
// The files are read again every minute, so that certificates can be exchanged
// while the processes run; a connection keeps those that it began with.
#ifndef TROUPE_PROTO_TRUST_GRPC_CREDENTIALS_H_
#define TROUPE_PROTO_TRUST_GRPC_CREDENTIALS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "proto/trust/peer_role.h"
#include "proto/trust/peer_trust.h"

namespace troupe {

// Errors as CheckTrust.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ChannelCredentials(
    const PeerTrust& trust, PeerRole role, absl::string_view scheduler);

// "/troupe.Workers/" is for workers.
struct ServiceAccess {
  std::string prefix;
  PeerRole role;
};

// What no prefix fits (health, reflection) is for clients.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerCredentials(
    const PeerTrust& trust, std::vector<ServiceAccess> services,
    absl::string_view listen);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_GRPC_CREDENTIALS_H_
