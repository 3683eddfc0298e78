#include "clients/cpp/rpc_status.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

// What gRPC itself says when the connection is gone; any other message under
// UNAVAILABLE is the scheduler's own and stays as it is.
bool IsTransportFault(const std::string& message) {
  for (const char* sign : {"Socket closed", "connect", "Connection", "GOAWAY",
                           "recvmsg", "endpoint", "transport", "Broken pipe"}) {
    if (absl::StrContains(message, sign)) return true;
  }
  return message.empty();
}

}  // namespace

absl::Status RpcStatus(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  const std::string& message = status.error_message();
  if (code == absl::StatusCode::kUnavailable && IsTransportFault(message)) {
    return absl::UnavailableError(absl::StrCat(
        "lost the scheduler at ", address, " (", message,
        "); is it still running? Its log is in the cluster's folder, under "
        "logs/"));
  }
  // So gRPC says it; other words are the scheduler's own.
  if (code == absl::StatusCode::kDeadlineExceeded &&
      (message.empty() || absl::StartsWith(message, "Deadline Exceeded"))) {
    return absl::DeadlineExceededError(
        absl::StrCat("the scheduler at ", address, " did not answer in time"));
  }
  if (code == absl::StatusCode::kUnimplemented) {
    return absl::UnimplementedError(
        absl::StrCat("what answers at ", address,
                     " is no troupe-scheduler of this version"));
  }
  return absl::Status(code, message);
}

absl::Status Unreachable(const std::string& address, absl::Duration waited,
                         absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("no scheduler answers at ", address, " (waited ",
                   absl::FormatDuration(waited), ": ", why,
                   "); start a cluster with: troupe up --workers N --dir DIR"));
}

}  // namespace troupe
