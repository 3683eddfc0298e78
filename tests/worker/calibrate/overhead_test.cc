#include "worker/calibrate/overhead.h"

#include <atomic>

#include "gtest/gtest.h"

namespace troupe {
namespace {

// A microsecond passes whenever somebody looks at it.
class TickingClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch(); }
  int64_t MonotonicNanos() const override { return nanos_ += 1000; }

 private:
  mutable std::atomic<int64_t> nanos_ = 0;
};

// The executor looks at the clock when an instruction ends, which is when the
// next one of its lane starts, unless it waits.
TEST(Overhead, IsInMicrosecondsOfOneInstruction) {
  const TickingClock clock;
  const absl::StatusOr<double> overhead = MeasureInstructionOverheadUs(clock);
  ASSERT_TRUE(overhead.ok()) << overhead.status();
  EXPECT_GE(*overhead, 1);
  EXPECT_LT(*overhead, 4);
}

}  // namespace
}  // namespace troupe
