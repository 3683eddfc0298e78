#include "worker/rank/uploads.h"

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/ops/split_memory_device.h"

namespace troupe {
namespace {

// As many copies as there are blocks return before the device has taken one,
// though what they were made from is gone.
TEST(Uploads, DoNotWaitForTheDevice) {
  SplitMemoryDevice device({.threads = 1});
  constexpr int kCount = Uploads::kBlocks;
  const std::unique_ptr<Uploads> uploads =
      Uploads::Create(device, sizeof(int)).value();
  int* const there =
      static_cast<int*>(device.Allocate(kCount * sizeof(int)).value());
  absl::Notification begin;
  device.Enqueue([&] { begin.WaitForNotification(); });
  for (int i = 0; i < kCount; ++i) {
    int value = 10 + i;
    ASSERT_TRUE(uploads->Copy(there + i, &value, sizeof(value)).ok());
    value = -1;
  }
  begin.Notify();
  std::vector<int> got(kCount), want(kCount);
  device.CopyToHost(got.data(), there, kCount * sizeof(int));
  ASSERT_TRUE(device.Synchronize().ok());
  std::iota(want.begin(), want.end(), 10);
  EXPECT_EQ(got, want);
  device.Free(there);
}

// With more of them, each block is used again when its copy has run.
TEST(Uploads, UseTheirBlocksAgain) {
  SplitMemoryDevice device({.threads = 1});
  constexpr int kCount = 5 * Uploads::kBlocks + 1;
  const std::unique_ptr<Uploads> uploads =
      Uploads::Create(device, 2 * sizeof(int)).value();
  int* const there =
      static_cast<int*>(device.Allocate(kCount * sizeof(int)).value());
  std::vector<int> got(kCount), want(kCount);
  std::iota(want.begin(), want.end(), 0);
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(uploads->Copy(there + i, &want[i], sizeof(int)).ok());
  }
  device.CopyToHost(got.data(), there, kCount * sizeof(int));
  ASSERT_TRUE(device.Synchronize().ok());
  EXPECT_EQ(got, want);
  device.Free(there);
}

// Their memory is not given back while the device may read it.
TEST(Uploads, AreWaitedForThoughTheDeviceHasFailed) {
  SplitMemoryDevice device({.threads = 1});
  std::unique_ptr<Uploads> uploads =
      Uploads::Create(device, sizeof(int)).value();
  void* const there = device.Allocate(sizeof(int)).value();
  absl::Notification at_work, begin;
  device.Enqueue([&] {
    at_work.Notify();
    begin.WaitForNotification();
  });
  const int value = 1;
  ASSERT_TRUE(uploads->Copy(there, &value, sizeof(value)).ok());
  at_work.WaitForNotification();
  const absl::Status broken = absl::InternalError("a kernel elsewhere");
  device.Fail(broken);
  std::atomic<bool> gone{false};
  std::thread owner([&] {
    uploads.reset();
    gone = true;
  });
  for (int i = 0; i < 20000 && !gone; ++i) std::this_thread::yield();
  EXPECT_FALSE(gone);
  begin.Notify();
  owner.join();
  EXPECT_EQ(device.Synchronize(), broken);
  device.Free(there);
}

TEST(Uploads, AreCopiesWhereTheDeviceIsTheHosts) {
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  const std::unique_ptr<Uploads> uploads =
      Uploads::Create(*device, sizeof(int)).value();
  int to = 0;
  const int from = 7;
  ASSERT_TRUE(uploads->Copy(&to, &from, sizeof(int)).ok());
  EXPECT_EQ(to, 7);
}

}  // namespace
}  // namespace troupe
