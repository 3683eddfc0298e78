#include "proto/trust/refused_peers.h"

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "proto/base/one_line.h"

namespace troupe {
namespace {

constexpr int64_t kWindowNs = 10'000'000'000;
constexpr int kLinesMax = 20;  // in a window
constexpr size_t kLineBytesMax = 600;

// The lines of a door's present window.
struct Lines {
  absl::Mutex mutex;
  int64_t ends_ns ABSL_GUARDED_BY(mutex) = 0;
  int written ABSL_GUARDED_BY(mutex) = 0;
  int64_t kept_back ABSL_GUARDED_BY(mutex) = 0;
};

constexpr int kDoors = 4;

Lines& LinesOf(Door door) {
  static Lines* const lines = new Lines[kDoors];
  return lines[static_cast<int>(door)];
}

}  // namespace

void TellOfRefusedPeer(Door door, absl::string_view what) {
  std::string also;
  {
    Lines& lines = LinesOf(door);
    absl::MutexLock lock(&lines.mutex);
    // Wall time may jump, and a window with it.
    const int64_t now_ns = RealClock().MonotonicNanos();
    if (now_ns >= lines.ends_ns) {
      if (lines.kept_back > 0) {
        also = absl::StrCat(" (and ", lines.kept_back, " before it)");
      }
      lines.ends_ns = now_ns + kWindowNs;
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
