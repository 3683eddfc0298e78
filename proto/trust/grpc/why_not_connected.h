// Why a channel has not connected: nobody is there, or what is there and this
// process do not believe each other.
#ifndef TROUPE_PROTO_TRUST_GRPC_WHY_NOT_CONNECTED_H_
#define TROUPE_PROTO_TRUST_GRPC_WHY_NOT_CONNECTED_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"

namespace troupe {

// In words, on one line; asks gRPC, for a second at most.
std::string WhyNotConnected(const std::shared_ptr<grpc::Channel>& channel);

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_GRPC_WHY_NOT_CONNECTED_H_
