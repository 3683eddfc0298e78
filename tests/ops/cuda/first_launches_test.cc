#include "ops/cuda/first_launches.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr int kKernels[2] = {};

TEST(FirstLaunchesTest, TheFirstWaitsForOperationsUnderWay) {
  FirstLaunches launches;
  auto operation = std::make_unique<FirstLaunches::Operation>(launches);
  std::atomic<bool> ended{false};
  std::thread lane(
      [&] { launches.Run(&kKernels[0], [&] { EXPECT_TRUE(ended); }); });
  // Another lane's, which a peer may wait for: nobody's turn comes before it.
  { const FirstLaunches::Operation other(launches); }
  ended = true;
  operation.reset();
  lane.join();
}

TEST(FirstLaunchesTest, KnowsWhetherItIsAlone) {
  FirstLaunches launches(absl::Milliseconds(1));
  launches.RunAlone([](bool alone) { EXPECT_TRUE(alone); });
  const FirstLaunches::Operation operation(launches);
  launches.RunAlone([](bool alone) { EXPECT_FALSE(alone); });
}

// What a library launches depends on a size: each has a first time.
TEST(FirstLaunchesTest, AnotherSizeIsAnotherKernel) {
  FirstLaunches launches;
  launches.Run(
      &kKernels[0], [] {}, 100);
  auto operation = std::make_unique<FirstLaunches::Operation>(launches);
  bool launched = false;
  launches.Run(
      &kKernels[0], [&] { launched = true; }, 100);
  EXPECT_TRUE(launched);
  std::atomic<bool> ended{false};
  std::thread lane([&] {
    launches.Run(
        &kKernels[0], [&] { EXPECT_TRUE(ended); }, 101);
  });
  ended = true;
  operation.reset();
  lane.join();
}

TEST(FirstLaunchesTest, LaterOnesWaitForNothing) {
  FirstLaunches launches;
  int launched = 0;
  launches.Run(&kKernels[0], [&] { ++launched; });
  const FirstLaunches::Operation operation(launches);
  launches.Run(&kKernels[0], [&] { ++launched; });
  EXPECT_EQ(launched, 2);
}

// Two ranks, each of which has an operation under way that ends when the other
// has launched what is behind its own first launch.
TEST(FirstLaunchesTest, ACircleOfWaitsEnds) {
  FirstLaunches here(absl::Milliseconds(50)), there(absl::Milliseconds(50));
  absl::Notification launched_here, launched_there;
  std::thread peer([&] {
    const FirstLaunches::Operation operation(there);
    there.Run(&kKernels[0], [&] { launched_there.Notify(); });
    launched_here.WaitForNotification();
  });
  const FirstLaunches::Operation operation(here);
  here.Run(&kKernels[0], [&] { launched_here.Notify(); });
  launched_there.WaitForNotification();
  peer.join();
}

TEST(FirstLaunchesTest, NoOperationBeginsMeanwhile) {
  FirstLaunches launches;
  absl::Notification loading;
  std::atomic<bool> loaded{false};
  std::thread lane([&] {
    launches.Run(&kKernels[0], [&] {
      loading.Notify();
      // Two may be loaded at the same time.
      launches.Run(&kKernels[1], [] {});
      loaded = true;
    });
  });
  loading.WaitForNotification();
  const FirstLaunches::Operation operation(launches);
  EXPECT_TRUE(loaded);
  lane.join();
}

// Lanes that launch kernels, new to each round, and lanes with operations.
TEST(FirstLaunchesTest, ManyLanesComeToTheirEnd) {
  constexpr int kRounds = 1000;
  FirstLaunches launches;
  const std::vector<char> kernels(kRounds);
  std::atomic<int> launched{0};
  const auto launch = [&] {
    for (const char& kernel : kernels) {
      for (int i = 0; i < 3; ++i) launches.Run(&kernel, [&] { ++launched; });
    }
  };
  const auto operate = [&] {
    for (int i = 0; i < kRounds; ++i) {
      const FirstLaunches::Operation operation(launches);
      std::this_thread::yield();
    }
  };
  std::vector<std::thread> lanes;
  for (int i = 0; i < 2; ++i) lanes.emplace_back(operate);
  lanes.emplace_back(launch);
  for (std::thread& lane : lanes) lane.join();
  EXPECT_EQ(launched, 3 * kRounds);
}

}  // namespace
}  // namespace troupe
