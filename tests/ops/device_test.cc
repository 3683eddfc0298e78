#include "ops/device.h"

#include <thread>

#include "ops/matmul.h"
#include "ops/reduce.h"
#include "tests/ops/devices.h"

namespace troupe {
namespace {

class DeviceTest : public OpTest {};

TEST_P(DeviceTest, MemoryIsAlignedCopiedAndZeroed) {
  absl::StatusOr<void*> memory = device().Allocate(1 << 20);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*memory) % Device::kAlignment, 0u);
  std::vector<char> host(1 << 20, 7), back(1 << 20);
  device().CopyFromHost(*memory, host.data(), host.size());
  device().Zero(static_cast<char*>(*memory) + 3, 1000);
  device().CopyToHost(back.data(), *memory, back.size());
  EXPECT_TRUE(device().Synchronize().ok());
  std::fill_n(host.begin() + 3, 1000, 0);
  EXPECT_EQ(host, back);
  device().Free(*memory);
}

TEST_P(DeviceTest, DescribesItself) {
  const bool cpu = device().kind() == DeviceKind::kCpu;
  EXPECT_EQ(device().Describe().rfind(cpu ? "cpu: " : "cuda:0: ", 0), 0u)
      << device().Describe();
}

TEST_P(DeviceTest, TooMuchMemoryIsAnError) {
  EXPECT_EQ(device().Allocate(size_t{1} << 60).status().code(),
            absl::StatusCode::kResourceExhausted);
}

// Several threads on one device, and each on one of its own.
TEST_P(DeviceTest, OpsMayRunConcurrently) {
  const Values a = Random(150 * 130), b = Random(130 * 110);
  const auto product = [&](Device& on) {
    const TestTensor ta(on, {150, 130}, a), tb(on, {130, 110}, b);
    const TestTensor c(on, DType::kF32, {150, 110});
    MatMul(on, {.a = ta, .b = tb, .c = c});
    const TestTensor norm(on, {1}, {0}, DType::kF64);
    SumOfSquares(on, {.x = c, .result = norm});
    return norm.Read()[0];
  };
  const double want = product(device());
  std::vector<double> got(6);
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const std::unique_ptr<Device> own = *NewDevice();
      for (int round = 0; round < 5; ++round) {
        got[i] = product(i % 2 == 0 ? device() : *own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(got, Values(6, want));
}

TROUPE_ON_EACH_DEVICE(DeviceTest);

}  // namespace
}  // namespace troupe
