// What gRPC says, in our log: that a handshake failed (no TLS, no certificate,
// one of another authority, one whose time is over, half a handshake, garbage)
// as a line of refused_peers.h, its errors as they are, the rest nowhere.
#ifndef TROUPE_PROTO_TRUST_GRPC_GRPC_LOG_H_
#define TROUPE_PROTO_TRUST_GRPC_GRPC_LOG_H_

namespace troupe {

// From now on. Thread-safe; does so once.
void TakeLogOfGrpc();

}  // namespace troupe

#endif  // TROUPE_PROTO_TRUST_GRPC_GRPC_LOG_H_
