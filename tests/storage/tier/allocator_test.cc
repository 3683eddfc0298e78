#include "storage/tier/allocator.h"

#include <cstdint>

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

TEST(HostAllocator, GivesAlignedZeroes) {
  HostAllocator allocator;
  const absl::StatusOr<void*> data = allocator.Allocate(5000);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*data) % 4096, 0u);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(static_cast<char*>(*data)[i], 0);
  }
  allocator.Free(*data, 5000);
}

TEST(HostAllocator, RefusesWhatTheMachineDoesNotHave) {
  HostAllocator allocator;
  EXPECT_TRUE(Fails(allocator.Allocate(size_t{1} << 60).status(),
                    absl::StatusCode::kResourceExhausted,
                    {"lower the tier's budget"}));
}

}  // namespace
}  // namespace troupe
