#include "scheduler/service/request_rate.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t WaitMs(RequestRate& rate, const std::string& client, int64_t now_ns) {
  const auto wait = rate.Take(client, now_ns);
  return wait.has_value() ? absl::ToInt64Milliseconds(*wait) : -1;
}

TEST(RequestRate, SlowsDownWhoAsksWithoutPause) {
  RequestRate rate(
      {.per_second = 10, .burst = 3, .wait_max = absl::Milliseconds(300)});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(WaitMs(rate, "a", kSecond), 0);
  EXPECT_EQ(WaitMs(rate, "a", kSecond), 100);
  EXPECT_EQ(WaitMs(rate, "a", kSecond), 200);
  EXPECT_EQ(WaitMs(rate, "a", kSecond), 300);
  EXPECT_EQ(WaitMs(rate, "a", kSecond), -1) << "too many wait";
  EXPECT_EQ(WaitMs(rate, "a", kSecond), -1) << "and the refused one does not";
  EXPECT_EQ(WaitMs(rate, "b", kSecond), 0) << "others are served";
  EXPECT_EQ(WaitMs(rate, "a", kSecond + kSecond / 10), 300);
  // After a pause it may burst again.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(WaitMs(rate, "a", 9 * kSecond), 0);
  EXPECT_EQ(WaitMs(rate, "a", 9 * kSecond), 100);
}

// One that is answered before it asks again gets exactly the rate.
TEST(RequestRate, AClosedLoopGetsTheRate) {
  RequestRate rate({.per_second = 200, .burst = 400});
  int64_t now_ns = 0;
  int answered = 0;
  for (; now_ns < 10 * kSecond; ++answered) {
    now_ns += absl::ToInt64Nanoseconds(*rate.Take("a", now_ns));
  }
  EXPECT_NEAR(answered, 400 + 10 * 200, 2);
}

TEST(RequestRate, ATableThatIsFullIsShared) {
  RequestRate rate({.per_second = 1,
                    .burst = 1,
                    .wait_max = absl::Seconds(9),
                    .clients_max = 2});
  EXPECT_EQ(WaitMs(rate, "a", 0), 0);
  EXPECT_EQ(WaitMs(rate, "b", 0), 0);
  EXPECT_EQ(WaitMs(rate, "c", 0), 0);
  EXPECT_EQ(WaitMs(rate, "d", 0), 1000) << "with c";
  EXPECT_EQ(WaitMs(rate, "a", 0), 1000) << "a is known";
  EXPECT_EQ(WaitMs(rate, "e", 60 * kSecond), 0) << "they are forgotten";
  EXPECT_EQ(WaitMs(rate, "f", 60 * kSecond), 0);
}

}  // namespace
}  // namespace troupe
