#include "ops/cuda/facts.h"

#include "gtest/gtest.h"
#include "ops/cuda/device.h"

namespace troupe {
namespace {

TEST(GpuFactsTest, AreThoseOfTheDevice) {
  const absl::StatusOr<std::unique_ptr<Device>> device = NewCudaDevice({});
  if (!device.ok()) {
    EXPECT_FALSE(ReadGpuFacts(0).ok());
    EXPECT_FALSE(FreeGpuBytes(0).ok());
    GTEST_SKIP() << "no CUDA device: " << device.status();
  }
  const absl::StatusOr<GpuFacts> facts = ReadGpuFacts(0);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_NE((*device)->Describe().find(facts->name), std::string::npos);
  EXPECT_EQ(facts->uuid.substr(0, 4), "GPU-");
  EXPECT_EQ(facts->uuid.size(), 40u);
  EXPECT_GT(facts->free_bytes, 0);
  EXPECT_LT(facts->free_bytes, facts->memory_bytes);
  EXPECT_GE(facts->driver_version, 12000);
  const absl::StatusOr<int64_t> free = FreeGpuBytes(0);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_GT(*free, 0);
}

}  // namespace
}  // namespace troupe
