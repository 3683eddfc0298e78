#include "proto/base/steady_time.h"

#include <memory>
#include <thread>

#include "gtest/gtest.h"
#include "tests/proto/base/wall_clock_step.h"

namespace troupe {
namespace {

// A wait that this ends late has hung.
constexpr absl::Duration kLong = absl::Minutes(1);

TEST(SteadyTime, StepsOfTheWallClockAreNotInIt) {
  absl::Time last = SteadyNow();
  for (const absl::Duration by : {absl::Hours(1), -absl::Hours(2)}) {
    StepWallClock(by);
    const absl::Time now = SteadyNow();
    EXPECT_GE(now, last);
    EXPECT_LT(now - last, kLong);
    last = now;
  }
  StepWallClock(absl::Hours(1));
}

// As long as it is to be, whether or not the clock has stepped back in it.
TEST(SteadyTime, AWaitLastsAsLongAsItIsTo) {
  constexpr absl::Duration kWait = absl::Milliseconds(30);
  for (const absl::Duration by : {absl::Hours(1), -absl::Hours(1)}) {
    StepWallClock(by);
    absl::Mutex mutex;
    SteadyCondition never;
    const SteadyNotification nobody;
    const absl::Time start = SteadyNow();
    {
      absl::MutexLock lock(&mutex);
      EXPECT_FALSE(never.Await(mutex, kWait, [] { return false; }));
    }
    EXPECT_FALSE(nobody.WaitForNotificationWithTimeout(kWait));
    const absl::Duration took = SteadyNow() - start;
    EXPECT_GE(took, 2 * kWait);
    EXPECT_LT(took, kLong);
  }
}

TEST(SteadyTime, AWaitEndsWhenWhatItWaitsForComes) {
  absl::Mutex mutex;
  SteadyCondition came;
  int count = 0;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) {
      absl::MutexLock lock(&mutex);
      ++count;
      came.Say();
    }
  });
  {
    absl::MutexLock lock(&mutex);
    EXPECT_TRUE(came.Await(mutex, absl::InfiniteDuration(),
                           [&] { return count == 1000; }));
    EXPECT_TRUE(came.Await(mutex, -absl::InfiniteDuration(),
                           [&] { return count == 1000; }));
    EXPECT_FALSE(came.Await(mutex, -absl::InfiniteDuration(),
                            [&] { return count == 0; }));
  }
  other.join();
}

// A thread that was told may end the notification's life.
TEST(SteadyTime, ANotificationMayGoWhenItCame) {
  for (int i = 0; i < 1000; ++i) {
    auto told = std::make_unique<SteadyNotification>();
    EXPECT_FALSE(told->HasBeenNotified());
    std::thread other([notification = told.get()] { notification->Notify(); });
    if (i % 2 == 0) {
      told->WaitForNotification();
    } else {
      EXPECT_TRUE(told->WaitForNotificationWithTimeout(kLong));
    }
    EXPECT_TRUE(told->HasBeenNotified());
    told.reset();
    other.join();
  }
}

}  // namespace
}  // namespace troupe
