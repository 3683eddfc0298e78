#include "tests/proto/base/wall_clock_step.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "absl/time/clock.h"

namespace {

std::atomic<int64_t> stepped_ns = 0;

absl::Time KernelNow() {
  timespec now = {};
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return absl::TimeFromTimespec(now);
}

}  // namespace

// In place of the C library's.
extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) {
    *time = absl::ToTimespec(absl::TimeFromTimespec(*time) +
                             absl::Nanoseconds(stepped_ns.load()));
  }
  return result;
}

int gettimeofday(timeval* time, void* zone) noexcept {
  timespec now = {};
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  *time = absl::ToTimeval(absl::TimeFromTimespec(now));
  return result;
}

}  // extern "C"

namespace troupe {

void StepWallClock(absl::Duration by) {
  stepped_ns += absl::ToInt64Nanoseconds(by);
  const auto is_noticed = [] {
    const absl::Duration ahead = absl::Now() - KernelNow();
    return absl::AbsDuration(ahead - absl::Nanoseconds(stepped_ns.load())) <
           absl::Seconds(1);
  };
  while (!is_noticed()) absl::SleepFor(absl::Milliseconds(10));
}

}  // namespace troupe
