// Time comes in through constructors, so that tests and simulations own it.
#ifndef TROUPE_PROTO_BASE_CLOCK_H_
#define TROUPE_PROTO_BASE_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "absl/time/time.h"

namespace troupe {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time; may jump. For what people read.
  virtual absl::Time Now() const = 0;
  // Nanoseconds that only grow, from an arbitrary origin. For durations.
  virtual int64_t MonotonicNanos() const = 0;
};

class RealClock final : public Clock {
 public:
  absl::Time Now() const override;
  int64_t MonotonicNanos() const override;
};

// Stands still until it is advanced.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(absl::Time start = absl::UnixEpoch())
      : nanos_(absl::ToUnixNanos(start)) {}
  absl::Time Now() const override {
    return absl::FromUnixNanos(nanos_ + stepped_);
  }
  int64_t MonotonicNanos() const override { return nanos_; }
  void Advance(absl::Duration by) { nanos_ += absl::ToInt64Nanoseconds(by); }
  // Wall time jumps, forward or back, and no time passes.
  void Step(absl::Duration by) { stepped_ += absl::ToInt64Nanoseconds(by); }

 private:
  std::atomic<int64_t> nanos_;
  std::atomic<int64_t> stepped_{0};
};

}  // namespace troupe

#endif  // TROUPE_PROTO_BASE_CLOCK_H_
