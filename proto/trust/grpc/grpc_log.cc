#include "proto/trust/grpc/grpc_log.h"

#include <grpc/support/log.h>

#include <string>

#include "absl/base/call_once.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/log.h"
#include "proto/base/one_line.h"
#include "proto/trust/refused_peers.h"

namespace troupe {
namespace {

constexpr size_t kLineBytesMax = 300;

// Of "Handshake read failed {..., children:[UNKNOWN:FD Shutdown {...,
// children:[UNKNOWN:Handshake timed out {file:..." the reason is the innermost.
std::string Reason(absl::string_view error) {
  constexpr absl::string_view kCode = "UNKNOWN:";
  const size_t last = error.rfind(kCode);
  if (last != error.npos) error.remove_prefix(last + kCode.size());
  const absl::string_view reason = error.substr(0, error.find(" {"));
  // OpenSSL says no more than that.
  return absl::StrCat(reason,
                      absl::EndsWith(reason, "certificate verify failed")
                          ? ", as it is of another authority, or expired"
                          : "");
}

// What gRPC says of the same handshake besides, at the level of its errors.
bool IsSaidOnce(absl::string_view message) {
  return absl::StartsWith(message, "Handshake failed with fatal error") ||
         absl::StrContains(message, "cancel_check_peer error");
}

void ToOurLog(gpr_log_func_args* args) {
  absl::string_view message = args->message;
  if (absl::EndsWith(args->file, "chttp2_server.cc") &&
      absl::ConsumePrefix(&message, "Handshaking failed: ")) {
    TellOfRefusedPeer(Door::kGrpc, Reason(message));
  } else if (args->severity == GPR_LOG_SEVERITY_ERROR && !IsSaidOnce(message)) {
    LogWarning(absl::StrCat("gRPC: ", OneLine(message, kLineBytesMax)));
  }
}

}  // namespace

void TakeLogOfGrpc() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    gpr_set_log_function(&ToOurLog);
    // It tells of failed handshakes at no higher level.
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
  });
}

}  // namespace troupe
