#include "worker/rank/device_allocator.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/ops/split_memory_device.h"

namespace troupe {
namespace {

TEST(DeviceAllocator, GivesZeroedMemoryOfTheDevice) {
  SplitMemoryDevice device({.threads = 1});
  DeviceAllocator allocator(device);
  const absl::StatusOr<void*> memory = allocator.Allocate(1000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::vector<char> host(1000, 7);
  device.CopyToHost(host.data(), *memory, host.size());
  ASSERT_TRUE(device.Synchronize().ok());
  EXPECT_EQ(host, std::vector<char>(1000, 0));
  allocator.Free(*memory, 1000);
}

TEST(DeviceAllocator, SaysWhenThereIsNoneLeft) {
  SplitMemoryDevice device({.threads = 1});
  DeviceAllocator allocator(device);
  EXPECT_TRUE(
      absl::IsResourceExhausted(allocator.Allocate(size_t{1} << 50).status()));
}

TEST(PinnedAllocator, GivesZeroedMemoryOfTheHost) {
  SplitMemoryDevice device({.threads = 1});
  PinnedAllocator allocator(device);
  const absl::StatusOr<void*> memory = allocator.Allocate(1000);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const char* bytes = static_cast<const char*>(*memory);
  EXPECT_EQ(std::vector<char>(bytes, bytes + 1000), std::vector<char>(1000));
  allocator.Free(*memory, 1000);
}

}  // namespace
}  // namespace troupe
