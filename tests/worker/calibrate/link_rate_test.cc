#include "worker/calibrate/link_rate.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(LinkRate, TwoRanksOfThisHostTalk) {
  const RealClock clock;
  for (const char* backend : {"gloo", "shared_memory"}) {
    const absl::StatusOr<LinkRate> rate =
        MeasureLink(backend, clock, {.bytes = 1 << 16, .repeats = 2});
    ASSERT_TRUE(rate.ok()) << rate.status();
    EXPECT_GT(rate->latency_us(), 0);
    EXPECT_GT(rate->bytes_per_second(), 0);
  }
}

TEST(LinkRate, NamesTheBackendThatFails) {
  const RealClock clock;
  const absl::Status status = MeasureLink("pigeons", clock, {}).status();
  EXPECT_EQ(status.message().find("link over pigeons: "), 0u) << status;
}

}  // namespace
}  // namespace troupe
