#include "worker/collective/shared_memory/collectives.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/worker/collective/even_blocks.h"
#include "tests/worker/collective/shared_memory/on_segment.h"

namespace troupe {
namespace {

// Each rank chooses for itself.
CopyKind KindOf(int rank) {
  return rank % 2 == 0 ? CopyKind::kStream : CopyKind::kOrdinary;
}

// One piece less, more and many; all of it follows one after the other, so that
// slots of both parities are used again by operations of another sort.
TEST(SharedCollectives, FollowEachOtherInAnyOrder) {
  for (const int ranks : {2, 3}) {
    OnSegment(ranks, [](Phases& phases) {
      const int ranks = phases.ranks();
      for (const int64_t size : {7, 8192, 200'001, 700'000, 5, 300'000}) {
        std::vector<int32_t> sum(size), root(size, phases.rank());
        for (int64_t i = 0; i < size; ++i) sum[i] = phases.rank() + i % 5;
        ASSERT_TRUE(phases.Begin(absl::InfiniteFuture(), size).ok());
        ASSERT_TRUE(SharedAllReduce(phases, KindOf(phases.rank()),
                                    EvenBlocks(sum, phases.ranks()).blocks(),
                                    ReduceOp::kSum)
                        .ok());
        for (int64_t i = 0; i < size; ++i) {
          ASSERT_EQ(sum[i], ranks * (ranks - 1) / 2 + ranks * (i % 5));
        }
        ASSERT_TRUE(phases.Begin(absl::InfiniteFuture(), size).ok());
        ASSERT_TRUE(SharedBroadcast(phases, KindOf(phases.rank()),
                                    CommBuffer::Of(absl::MakeSpan(root)), 1)
                        .ok());
        ASSERT_EQ(root, std::vector<int32_t>(size, 1));
      }
    });
  }
}

// Small ones are added up by everybody, large ones by the owner of each block:
// in the same order, so the same numbers give the same bits. So they do however
// they are copied.
TEST(SharedCollectives, SmallAndLargeSumsHaveTheSameBits) {
  constexpr int64_t kSmall = 1000, kLarge = 100'000;
  OnSegment(3, [](Phases& phases) {
    std::vector<float> sums;
    for (const CopyKind kind : {CopyKind::kStream, CopyKind::kOrdinary}) {
      for (const int64_t size : {kSmall, kLarge}) {
        std::vector<float> values(size);
        for (int64_t i = 0; i < size; ++i) {
          values[i] = 1.0f / (1 + phases.rank() + i % kSmall);
        }
        ASSERT_TRUE(phases.Begin(absl::InfiniteFuture(), 1).ok());
        ASSERT_TRUE(SharedAllReduce(phases, kind,
                                    EvenBlocks(values, phases.ranks()).blocks(),
                                    ReduceOp::kSum)
                        .ok());
        if (sums.empty()) sums = values;
        for (int64_t i = 0; i < size; ++i) {
          ASSERT_EQ(values[i], sums[i % kSmall]);
        }
      }
    }
  });
}

// As before any other operation.
TEST(SharedCollectives, AnOperationMayBeginWithATrial) {
  OnSegment(2, [](Phases& phases) {
    CopyChoice choice;
    for (int round = 0; round < 3; ++round) {
      ASSERT_TRUE(phases.Begin(absl::InfiniteFuture(), 1).ok());
      ASSERT_TRUE(TryCopies(phases, choice).ok());
      std::vector<int32_t> sum(300'000, 1 + phases.rank());
      ASSERT_TRUE(SharedAllReduce(phases, choice.kind(),
                                  EvenBlocks(sum, phases.ranks()).blocks(),
                                  ReduceOp::kSum)
                      .ok());
      ASSERT_EQ(sum, std::vector<int32_t>(300'000, 3));
    }
  });
}

}  // namespace
}  // namespace troupe
