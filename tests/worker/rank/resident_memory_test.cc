#include "worker/rank/resident_memory.h"

#include <vector>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(ResidentMemory, GrowsByWhatIsTouched) {
  const int64_t before = ResidentMemoryBytes();
  EXPECT_GT(before, 0);
  constexpr int64_t kBytes = 64 << 20;
  const std::vector<char> touched(kBytes, 1);
  EXPECT_GE(ResidentMemoryBytes(), before + kBytes / 2);
  EXPECT_EQ(touched.back(), 1);
}

}  // namespace
}  // namespace troupe
