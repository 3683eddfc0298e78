#include "worker/calibrate/overhead.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Overhead, IsMicrosecondsNotSeconds) {
  const RealClock clock;
  const absl::StatusOr<double> overhead = MeasureInstructionOverheadUs(clock);
  ASSERT_TRUE(overhead.ok()) << overhead.status();
  EXPECT_GT(*overhead, 0);
  EXPECT_LT(*overhead, 1e6);
}

}  // namespace
}  // namespace troupe
