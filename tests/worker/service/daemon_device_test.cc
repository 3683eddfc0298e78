// A worker whose device hangs.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/ops/split_memory_device.h"
#include "tests/worker/service/fake_scheduler.h"
#include "tests/worker/service/running_daemon.h"
#include "worker/doctor/device_answers.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// As a driver that does not come back, from when a test says so.
class HangingDevice final : public SplitMemoryDevice {
 public:
  HangingDevice() : SplitMemoryDevice({.threads = 1}) {}

  absl::Status Synchronize() override {
    if (hangs) goes_on.WaitForNotification();
    return SplitMemoryDevice::Synchronize();
  }
  absl::Status StartAfresh() override {
    ++afresh;
    if (hangs) goes_on.WaitForNotification();
    return SplitMemoryDevice::StartAfresh();
  }

  std::atomic<bool> hangs{false};
  std::atomic<int> afresh{0};
  absl::Notification goes_on;
};

TEST(WorkerDaemon, ADeviceThatHangsAsARankBeginsIsTheRanksReason) {
  FakeScheduler scheduler;
  auto owned = std::make_unique<HangingDevice>();
  HangingDevice& device = *owned;
  const DeviceAsker ask(device, absl::Seconds(1));
  Running daemon(
      scheduler.address(), std::move(owned), absl::Minutes(1),
      [&]() -> std::vector<std::string> {
        const Finding finding = ask();
        if (finding.state == FindingState::kOk) return {};
        return {finding.text};
      },
      [&] { return ask.StartAfresh(); });
  ASSERT_EQ(scheduler.AwaitMessages(1, IsRegister).size(), 1u);
  device.hangs = true;
  scheduler.Send("ada", Start(SmallJob(), daemon.worker()));
  const auto ended = scheduler.AwaitMessages(1, IsEnded);
  EXPECT_EQ(ended.size(), 1u);
  if (!ended.empty()) {
    EXPECT_THAT(ended[0].ended().error(),
                HasSubstr("no answer to a copy of 4 KiB within 1s"));
    EXPECT_TRUE(ended[0].ended().local_cause());
  }
  EXPECT_EQ(device.afresh, 0) << "a thread is in it still";
  daemon.Stop();
  EXPECT_TRUE(daemon.Join().ok());
  device.goes_on.Notify();
  while (ask().state != FindingState::kOk) std::this_thread::yield();
}

}  // namespace
}  // namespace troupe
