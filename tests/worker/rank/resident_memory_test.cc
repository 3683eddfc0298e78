#include "worker/rank/resident_memory.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/config.h"
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

// What glibc's heaps keep and give back. A sanitizer's heap, which takes their
// place, keeps freed blocks aside to see late uses of them.
class HeapOfGlibc : public testing::Test {
 protected:
  void SetUp() override {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
    GTEST_SKIP() << "this build has a sanitizer's heap, not glibc's";
#endif
  }
};

// Touches `bytes` in blocks that are too small for mappings of their own.
void Touch(size_t bytes) {
  constexpr size_t kBlock = 64 << 10;
  std::vector<std::unique_ptr<char[]>> blocks;
  blocks.reserve(bytes / kBlock);
  for (size_t i = 0; i < bytes / kBlock; ++i) {
    blocks.push_back(std::make_unique<char[]>(kBlock));
    std::fill_n(blocks.back().get(), kBlock, static_cast<char>(i));
  }
}

TEST_F(HeapOfGlibc, IsReleasedWhereItIsFree) {
  constexpr int64_t kBytes = 64 << 20;
  Touch(kBytes);
  ReleaseFreeMemory();
  const int64_t before = ResidentMemoryBytes();
  Touch(kBytes);
  ReleaseFreeMemory();
  EXPECT_LT(ResidentMemoryBytes(), before + kBytes / 8);
}

TEST_F(HeapOfGlibc, OfAThreadIsReleasedAtItsEnd) {
  constexpr int64_t kBytes = 24 << 20;
  const int64_t before = ResidentMemoryBytes();
  std::thread thread([before] {
    {
      const KeptFreeMemory kept;
      Touch(kBytes);
      EXPECT_GT(ResidentMemoryBytes(), before + kBytes / 2);
    }
    ReleaseFreeMemoryOfThread();
  });
  thread.join();
  EXPECT_LT(ResidentMemoryBytes(), before + kBytes / 8);
}

// A block that is freed is there for the next one.
TEST_F(HeapOfGlibc, IsKeptUntilItIsReleased) {
  constexpr int64_t kBytes = 24 << 20;
  const int64_t before = ResidentMemoryBytes();
  {
    const KeptFreeMemory kept;
    EXPECT_EQ(std::vector<char>(kBytes, 1).back(), 1);
    EXPECT_GT(ResidentMemoryBytes(), before + kBytes / 2);
  }
  ReleaseFreeMemory();
  EXPECT_LT(ResidentMemoryBytes(), before + kBytes / 8);
}

}  // namespace
}  // namespace troupe
