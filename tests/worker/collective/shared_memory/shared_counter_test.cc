#include "worker/collective/shared_memory/shared_counter.h"

#include <thread>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(SharedCounter, SetWakesWhoSleeps) {
  SharedCounter counter;
  std::thread sleeper([&] {
    for (uint32_t seen = 0; seen < 1000; ++seen) {
      while (counter.Get() == seen) {
        counter.Sleep(seen, absl::InfiniteDuration());
      }
    }
  });
  for (uint32_t value = 1; value <= 1000; ++value) counter.Set(value);
  sleeper.join();
}

TEST(SharedCounter, SleepEndsInTime) {
  SharedCounter counter;
  counter.Sleep(0, absl::Milliseconds(1));
  counter.Sleep(0, absl::ZeroDuration());
  counter.Sleep(0, -absl::Seconds(1));
  counter.Sleep(7, absl::InfiniteDuration());  // it is not 7
  EXPECT_EQ(counter.Get(), 0u);
}

}  // namespace
}  // namespace troupe
