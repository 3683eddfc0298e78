#include "trust/grpc/refused_peers.h"

#include <grpc/support/log.h>

#include <string>

#include "absl/base/call_once.h"
#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "proto/base/log.h"
#include "proto/base/one_line.h"

namespace troupe {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(10);
constexpr int kLinesMax = 20;  // in a window
constexpr size_t kLineBytesMax = 300;

// The lines of the present window.
struct Lines {
  absl::Mutex mutex;
  absl::Time began ABSL_GUARDED_BY(mutex) = absl::InfinitePast();
  int written ABSL_GUARDED_BY(mutex) = 0;
  int64_t kept_back ABSL_GUARDED_BY(mutex) = 0;
};

Lines& TheLines() {
  static Lines* const lines = new Lines;
  return *lines;
}

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
    TellOfRefusedPeer(Reason(message));
  } else if (args->severity == GPR_LOG_SEVERITY_ERROR && !IsSaidOnce(message)) {
    LogWarning(absl::StrCat("gRPC: ", OneLine(message, kLineBytesMax)));
  }
}

}  // namespace

void LogRefusedPeers() {
  static absl::once_flag once;
  absl::call_once(once, [] {
    gpr_set_log_function(&ToOurLog);
    // It tells of failed handshakes at no higher level.
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
  });
}

void TellOfRefusedPeer(absl::string_view what) {
  std::string also;
  {
    Lines& lines = TheLines();
    absl::MutexLock lock(&lines.mutex);
    const absl::Time now = absl::Now();
    if (now > lines.began + kWindow) {
      if (lines.kept_back > 0) {
        also = absl::StrCat(" (and ", lines.kept_back, " before it)");
      }
      lines.began = now;
      lines.written = 0;
      lines.kept_back = 0;
    }
    if (lines.written >= kLinesMax) {
      ++lines.kept_back;
      return;
    }
    ++lines.written;
  }
  LogWarning(
      absl::StrCat("refused a peer: ", OneLine(what, kLineBytesMax), also));
}

}  // namespace troupe
