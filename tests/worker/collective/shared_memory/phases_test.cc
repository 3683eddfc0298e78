#include "worker/collective/shared_memory/phases.h"

#include <atomic>

#include "gtest/gtest.h"
#include "proto/base/steady_time.h"
#include "tests/worker/collective/shared_memory/on_segment.h"

namespace troupe {
namespace {

TEST(Phases, NobodyIsAheadByMoreThanOne) {
  constexpr int kPhases = 300;
  for (const int ranks : {2, 5}) {
    std::atomic<int> ended = 0;
    OnSegment(ranks, [&](Phases& phases) {
      ASSERT_TRUE(phases.Begin(absl::InfiniteFuture(), 1).ok());
      for (int phase = 0; phase < kPhases; ++phase) {
        EXPECT_EQ(phases.writes(), phase % 2);
        EXPECT_EQ(phases.reads(), 1 - phase % 2);
        ++ended;
        ASSERT_TRUE(phases.Next().ok());
        EXPECT_GE(ended.load(), (phase + 1) * ranks);
      }
    });
  }
}

TEST(Phases, TellDifferentCallsApart) {
  OnSegment(2, [](Phases& phases) {
    ASSERT_TRUE(phases.Begin(absl::InfiniteFuture(), 5 + phases.rank()).ok());
    EXPECT_FALSE(phases.Next().ok());
    EXPECT_EQ(phases.verdict().code, absl::StatusCode::kInternal);
  });
}

TEST(Phases, AWaitEndsAtItsDeadline) {
  OnSegment(2, [](Phases& phases) {
    if (phases.rank() == 0) {
      // Rank 1 may have left by now, which says more.
      ASSERT_TRUE(phases.Begin(SteadyNow(), 1).ok());
      EXPECT_FALSE(phases.Next().ok());
      EXPECT_EQ(phases.verdict().peer, 1);
    }
  });
}

}  // namespace
}  // namespace troupe
