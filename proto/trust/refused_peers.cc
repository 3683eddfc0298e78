#include "proto/trust/refused_peers.h"

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
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

}  // namespace

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
