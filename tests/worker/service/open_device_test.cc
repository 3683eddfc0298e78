#include "worker/service/open_device.h"

#include <string>

#include "gtest/gtest.h"
#include "ops/cuda/device.h"

namespace troupe {
namespace {

TEST(OpenDevice, ACpuHasHostMemory) {
  WorkerOptions options = {.threads = 2, .device_memory = 1000};
  const auto opened = OpenDevice(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->device->kind(), DeviceKind::kCpu);
  EXPECT_EQ(opened->device->threads(), 2);
  EXPECT_FALSE(opened->gpu.has_value());
  EXPECT_EQ(options.device_memory, 1000);
  const auto memory = opened->device_memory->Allocate(100);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(*static_cast<char*>(*memory), 0);
  opened->device_memory->Free(*memory, 100);
}

TEST(OpenDevice, NamesTheFlagWhereThereIsNoSuchGpu) {
  WorkerOptions options = {.threads = 1, .device = "cuda:1000"};
  const absl::Status refused = OpenDevice(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_EQ(refused.message().substr(0, 21), "--device: cuda:1000: ")
      << refused;
  if (!BuiltWithCuda()) {
    EXPECT_EQ(refused.message(),
              "--device: cuda:1000: this build has no CUDA; build with "
              "--config=cuda; or use cpu");
  }
}

TEST(OpenDevice, AGpuHasABudgetBelowWhatIsFree) {
  if (!NewCudaDevice({}).ok()) GTEST_SKIP() << NewCudaDevice({}).status();
  WorkerOptions options = {.threads = 1, .device = "cuda:0"};
  const auto opened = OpenDevice(options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE(opened->gpu.has_value());
  EXPECT_GT(options.device_memory, 0);
  EXPECT_LT(options.device_memory, opened->gpu->memory_bytes());
  options.device_memory = int64_t{1} << 60;
  const absl::Status refused = OpenDevice(options).status();
  EXPECT_EQ(refused.message().substr(0, 15), "--device-memory") << refused;
}

}  // namespace
}  // namespace troupe
