#include "worker/rank/resident_memory.h"

#include <algorithm>
#include <memory>
#include <thread>
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

// Touches `bytes` in blocks that are too small for mappings of their own.
void Touch(size_t bytes) {
  constexpr size_t kBlock = 64 << 10;
  std::vector<std::unique_ptr<char[]>> blocks;
  for (size_t i = 0; i < bytes / kBlock; ++i) {
    blocks.push_back(std::make_unique<char[]>(kBlock));
    std::fill_n(blocks.back().get(), kBlock, static_cast<char>(i));
  }
}

TEST(ResidentMemory, IsReleasedWhereItIsFree) {
  constexpr int64_t kBytes = 64 << 20;
  Touch(kBytes);
  ReleaseFreeMemory();
  const int64_t before = ResidentMemoryBytes();
  Touch(kBytes);
  ReleaseFreeMemory();
  EXPECT_LT(ResidentMemoryBytes(), before + kBytes / 8);
}

void TouchByAnotherThread(size_t bytes) {
  std::thread thread([bytes] { Touch(bytes); });
  thread.join();
}

TEST(ResidentMemory, OfOtherThreadsIsReleasedWhereThereIsOneHeap) {
  KeepOneHeap();
  constexpr int64_t kBytes = 24 << 20;
  // glibc learns from it to keep more than this at the end of every heap.
  EXPECT_EQ(std::vector<char>(kBytes, 1).back(), 1);
  const int64_t before = ResidentMemoryBytes();
  TouchByAnotherThread(kBytes);
  ReleaseFreeMemory();
  EXPECT_LT(ResidentMemoryBytes(), before + kBytes / 8);
}

}  // namespace
}  // namespace troupe
