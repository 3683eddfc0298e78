#include "ops/cpu/parallel.h"

#include <atomic>
#include <cstdlib>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"

namespace troupe {
namespace {

TEST(Parallel, RangesTileExactlyOnce) {
  for (int threads = 1; threads <= 5; ++threads) {
    for (int64_t count : {0, 1, 2, 15, 16, 17, 100}) {
      for (int64_t multiple : {1, 16}) {
        std::vector<std::atomic<int>> seen(count);
        ParallelRanges(
            {.threads = threads, .count = count, .multiple = multiple},
            [&](int64_t begin, int64_t end) {
              EXPECT_EQ(begin % multiple, 0);
              for (int64_t i = begin; i < end; ++i) ++seen[i];
            });
        for (auto& times : seen) EXPECT_EQ(times, 1);
      }
    }
  }
}

// OpenMP may grant fewer threads than a region asks for, as here within
// another one, or wherever OMP_THREAD_LIMIT holds this test (BUILD.bazel).
TEST(Parallel, RangesWithinATaskTileExactlyOnce) {
  std::vector<std::atomic<int>> seen(100);
  ParallelTasks(2, 2, [&](int64_t task) {
    ParallelRanges({.threads = 4, .count = 50},
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       ++seen[task * 50 + i];
                     }
                   });
  });
  for (auto& times : seen) EXPECT_EQ(times, 1);
}

TEST(Parallel, KnowsHowManyThreadsARegionGets) {
  EXPECT_EQ(GrantedThreads(1), 1);
  const bool held = std::getenv("OMP_THREAD_LIMIT") != nullptr ||
                    std::getenv("OMP_MAX_ACTIVE_LEVELS") != nullptr;
  EXPECT_EQ(GrantedThreads(3), held ? 1 : 3);
  const CpuThreads device = GrantedCpuThreads(3);
  EXPECT_EQ(device.granted, held ? 1 : 3);
  EXPECT_EQ(device.held_by.empty(), !held);
  EXPECT_EQ(NewCpuDevice({.threads = 3})->threads(), device.granted);
}

TEST(Parallel, TasksRunOnceEach) {
  for (int threads = 1; threads <= 5; ++threads) {
    std::vector<std::atomic<int>> seen(23);
    ParallelTasks(threads, 23, [&](int64_t task) { ++seen[task]; });
    for (auto& times : seen) EXPECT_EQ(times, 1);
  }
}

TEST(Parallel, SmallWorkStaysOnTheCallingThread) {
  int calls = 0;
  ParallelRanges({.threads = 4, .count = 100, .at_least = 100},
                 [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace troupe
