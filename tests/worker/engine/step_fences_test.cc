#include "worker/engine/step_fences.h"

#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/ops/split_memory_device.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

class StepFencesTest : public testing::Test {
 protected:
  SplitMemoryDevice device_{{.threads = 1}};
  // Compute, then its reduction on another lane.
  const Program program_ = ParseProgram("F u0 m0\nR u0 g0 ^0\n").value();
};

TEST_F(StepFencesTest, ALanesQueueWaitsForAnothersWork) {
  StepFences fences(device_, program_, /*timed=*/false);
  ASSERT_TRUE(fences.Begin(RealClock()).ok());
  absl::Notification let_compute_end;
  std::vector<int> order;
  std::thread compute([&] {
    fences.Enter(0);
    device_.Enqueue([&] {
      let_compute_end.WaitForNotification();
      order.push_back(0);
    });
    fences.Leave(0);
  });
  compute.join();  // issued, and not done
  std::thread collective([&] {
    fences.Enter(1);
    device_.Enqueue([&] { order.push_back(1); });
    fences.Leave(1);
  });
  collective.join();
  EXPECT_TRUE(order.empty());
  let_compute_end.Notify();
  EXPECT_TRUE(fences.Await(1).ok());
  EXPECT_EQ(order, (std::vector<int>{0, 1}));
}

TEST_F(StepFencesTest, TimesAreThoseOfTheDevice) {
  StepFences fences(device_, program_, /*timed=*/true);
  ASSERT_TRUE(fences.Begin(RealClock()).ok());
  for (int i = 0; i < 2; ++i) {
    std::thread lane([&] {
      fences.Enter(i);
      fences.Leave(i);
    });
    lane.join();
  }
  ASSERT_TRUE(fences.Await(0).ok());
  ASSERT_TRUE(fences.Await(1).ok());
  const StepFences::Nanos compute = fences.Times(0);
  const StepFences::Nanos collective = fences.Times(1);
  EXPECT_GE(compute.start, 0);
  EXPECT_LE(compute.start, compute.end);
  EXPECT_LE(compute.end, collective.start);
  EXPECT_LE(collective.start, collective.end);
}

// Not one thread waits; the queues do.
TEST_F(StepFencesTest, TheRunIsBetweenWhatTheCallerEnqueuesBeforeAndAfter) {
  absl::Notification let_before_end;
  std::vector<int> order;
  device_.Enqueue([&] {
    let_before_end.WaitForNotification();
    order.push_back(-1);
  });
  StepFences fences(device_, program_, /*timed=*/false);
  ASSERT_TRUE(fences.Begin(RealClock()).ok());
  for (int i = 0; i < 2; ++i) {
    std::thread lane([&] {
      fences.Enter(i);
      device_.Enqueue([&order, i] { order.push_back(i); });
      fences.Leave(i);
    });
    lane.join();
  }
  fences.Join();
  device_.Enqueue([&] { order.push_back(2); });
  EXPECT_TRUE(order.empty());
  let_before_end.Notify();
  ASSERT_TRUE(device_.Synchronize().ok());
  EXPECT_EQ(order, (std::vector<int>{-1, 0, 1, 2}));
}

// Time is told by the host's clock, too.
TEST_F(StepFencesTest, WhereItIsTimedBeginWaitsForTheCallersQueue) {
  bool ran = false;
  device_.Enqueue([&] { ran = true; });
  StepFences fences(device_, program_, /*timed=*/true);
  ASSERT_TRUE(fences.Begin(RealClock()).ok());
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace troupe
