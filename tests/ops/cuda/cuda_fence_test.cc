#include "ops/cuda/cuda_fence.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/ops/cuda/with_gpu.h"

namespace troupe {
namespace {

using CudaFenceTest = WithGpu;

// Another thread's copy out, behind much work of this one.
TEST_F(CudaFenceTest, OrdersTheStreamsOfTwoThreads) {
  constexpr size_t kBytes = size_t{64} << 20;
  const absl::StatusOr<void*> memory = device_->Allocate(kBytes);
  const absl::StatusOr<void*> host = device_->AllocateHost(kBytes);
  ASSERT_TRUE(memory.ok() && host.ok()) << memory.status() << host.status();
  std::vector<char> ones(kBytes, 1);
  device_->CopyFromHost(*memory, ones.data(), kBytes);
  for (int i = 0; i < 100; ++i) device_->Zero(*memory, kBytes);
  const std::unique_ptr<Fence> fence = device_->Record(FenceUse::kOrder);
  std::thread reader([&] {
    device_->WaitFor(*fence);
    device_->CopyToHost(*host, *memory, kBytes);
    EXPECT_TRUE(device_->Synchronize().ok());
  });
  reader.join();
  const char* bytes = static_cast<const char*>(*host);
  EXPECT_EQ(std::count(bytes, bytes + kBytes, 0), static_cast<int64_t>(kBytes));
  device_->FreeHost(*host);
  device_->Free(*memory);
}

TEST_F(CudaFenceTest, TellsTheTimeOfTheDevice) {
  const absl::StatusOr<void*> memory = device_->Allocate(1 << 20);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const std::unique_ptr<Fence> before = device_->Record(FenceUse::kTiming);
  for (int i = 0; i < 10; ++i) device_->Zero(*memory, 1 << 20);
  const std::unique_ptr<Fence> after = device_->Record(FenceUse::kTiming);
  ASSERT_TRUE(after->Await().ok());
  EXPECT_TRUE(before->HasRun());
  EXPECT_TRUE(after->HasRun());
  EXPECT_GT(after->NanosSince(*before), 0);
  EXPECT_LT(before->NanosSince(*after), 0);
  device_->Free(*memory);
}

// So that a thread that has waited may give memory back.
TEST_F(CudaFenceTest, WaitsForWhatIsUnderWayThoughTheDeviceHasFailed) {
  constexpr size_t kBytes = size_t{256} << 20;
  const absl::StatusOr<void*> memory = device_->Allocate(kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  for (const bool failed_before : {false, true}) {
    for (int i = 0; i < 100; ++i) device_->Zero(*memory, kBytes);
    const absl::Status broken = absl::InternalError("it broke");
    if (failed_before) device_->Check(broken);
    std::unique_ptr<Fence> fence = device_->Record(FenceUse::kOrder);
    device_->Check(broken);
    EXPECT_FALSE(fence->HasRun());
    EXPECT_EQ(fence->Await(), broken);
    EXPECT_TRUE(fence->HasRun());
    EXPECT_EQ(cudaStreamQuery(device_->made_stream()), cudaSuccess);
    EXPECT_EQ(device_->Synchronize(), broken);
    fence.reset();
    ASSERT_TRUE(device_->StartAfresh().ok());
  }
  device_->Free(*memory);
}

TEST_F(CudaFenceTest, SaysTheErrorOfADeviceThatHasFailed) {
  device_->Check(absl::InternalError("it broke"));
  const std::unique_ptr<Fence> fence = device_->Record(FenceUse::kOrder);
  device_->WaitFor(*fence);
  EXPECT_TRUE(fence->HasRun());
  EXPECT_EQ(fence->Await(), absl::InternalError("it broke"));
}

}  // namespace
}  // namespace troupe
