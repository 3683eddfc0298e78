#include "proto/base/check.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string_view>

namespace troupe::internal {
namespace {

// Not through stdio, whose lock a thread may hold that waits for a pipe which
// nobody reads; nor does this wait for one longer than a second.
void WriteToStderr(std::string_view text) {
  constexpr int kWaitMs = 1000;
  while (!text.empty()) {
    pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (poll(&room, 1, kWaitMs) <= 0) return;
    // So much fits into a pipe that has any room.
    const ssize_t written = write(STDERR_FILENO, text.data(),
                                  std::min<size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return;
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

CheckFailure::CheckFailure(const char* file, int line, std::string what) {
  stream_ << file << ":" << line << ": check failed: " << what << " ";
}

CheckFailure::~CheckFailure() {
  stream_ << "\n";
  WriteToStderr(stream_.str());
  std::abort();
}

}  // namespace troupe::internal
