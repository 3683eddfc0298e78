#include "scheduler/service/turnstile.h"

#include <atomic>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Turnstile, ServesAllInTheirTurn) {
  Turnstile turnstile({.per_second = 1000, .burst = 2});
  constexpr int kRequests = 20;
  absl::BlockingCounter served(kRequests);
  std::vector<int> order;  // after two, on the turnstile's thread alone
  std::atomic<int> at_once = 0;
  for (int i = 0; i < kRequests; ++i) {
    turnstile.Enter("a", [&, i, caller = std::this_thread::get_id()](
                             const absl::Status& turn) {
      EXPECT_TRUE(turn.ok()) << turn;
      if (std::this_thread::get_id() == caller) {
        ++at_once;
      } else {
        order.push_back(i);
      }
      served.DecrementCount();
    });
  }
  served.Wait();
  EXPECT_GE(at_once, 2);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Turnstile, RefusesWhoLetsTooManyWait) {
  Turnstile turnstile(
      {.per_second = 0.001, .burst = 1, .wait_max = absl::ZeroDuration()});
  absl::Status first = absl::UnknownError("not called");
  absl::Status second;
  turnstile.Enter("a", [&](const absl::Status& turn) { first = turn; });
  turnstile.Enter("a", [&](const absl::Status& turn) { second = turn; });
  EXPECT_TRUE(first.ok()) << first;
  EXPECT_TRUE(absl::IsResourceExhausted(second)) << second;
  EXPECT_TRUE(absl::IsResourceExhausted(turnstile.EnterNow("a")));
  EXPECT_TRUE(turnstile.EnterNow("b").ok());
}

TEST(Turnstile, StopEndsThoseThatWait) {
  absl::Status waited;
  absl::Status late;
  {
    Turnstile turnstile(
        {.per_second = 0.001, .burst = 1, .wait_max = absl::Hours(1)});
    turnstile.Enter("a", [](const absl::Status&) {});
    turnstile.Enter("a", [&](const absl::Status& turn) { waited = turn; });
    turnstile.Stop();
    turnstile.Enter("b", [&](const absl::Status& turn) { late = turn; });
  }
  EXPECT_TRUE(absl::IsUnavailable(waited)) << waited;
  EXPECT_TRUE(absl::IsUnavailable(late)) << late;
}

}  // namespace
}  // namespace troupe
