#include "proto/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace troupe {

absl::Time RealClock::Now() const { return absl::Now(); }

int64_t RealClock::MonotonicNanos() const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace troupe
