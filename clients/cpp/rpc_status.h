// gRPC's status as ours: the same code, and for a call that nobody answered a
// message that says which address was tried and what to do about it.
#ifndef TROUPE_CLIENTS_CPP_RPC_STATUS_H_
#define TROUPE_CLIENTS_CPP_RPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/support/status.h"

namespace troupe {

absl::Status RpcStatus(const grpc::Status& status, const std::string& address);

// Unavailable: no connection to `address` within `waited`, because of `why`.
absl::Status Unreachable(const std::string& address, absl::Duration waited,
                         absl::string_view why);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CPP_RPC_STATUS_H_
