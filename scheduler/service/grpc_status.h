// absl::Status and grpc::Status have the same codes; the message of ours is cut
// where it would not fit into a response's trailer.
#ifndef TROUPE_SCHEDULER_SERVICE_GRPC_STATUS_H_
#define TROUPE_SCHEDULER_SERVICE_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace troupe {

inline constexpr size_t kMessageBytesMax = 6000;

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(
      static_cast<grpc::StatusCode>(status.code()),
      std::string(status.message().substr(0, kMessageBytesMax)));
}

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_GRPC_STATUS_H_
