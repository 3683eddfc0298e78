#include "worker/calibrate/link_rate.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(LinkRate, TwoRanksOfThisHostTalk) {
  const RealClock clock;
  const absl::StatusOr<LinkRate> rate =
      MeasureLoopback(clock, {.bytes = 1 << 16, .repeats = 2});
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_GT(rate->latency_us(), 0);
  EXPECT_GT(rate->bytes_per_second(), 0);
}

}  // namespace
}  // namespace troupe
