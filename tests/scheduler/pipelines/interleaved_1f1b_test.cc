#include "scheduler/pipelines/interleaved_1f1b.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Interleaved1F1B, GroupsOfMicroBatchesThroughOneStageAfterTheOther) {
  EXPECT_EQ(ComputeOrderText(*Interleaved1F1BOrder(
                {.ranks = 2, .micro_batches = 4, .virtual_stages = 2})),
            "F0m0 F0m1 F2m0 F2m1 F0m2 B2m0 F0m3 B2m1 F2m2 B0m0 F2m3 B0m1 "
            "B2m2 B2m3 B0m2 B0m3\n"
            "F1m0 F1m1 F3m0 B3m0 F3m1 B3m1 F1m2 B1m0 F1m3 B1m1 F3m2 B3m2 "
            "F3m3 B3m3 B1m2 B1m3\n");
}

TEST(Interleaved1F1B, RefusesOneStageARank) {
  EXPECT_EQ(
      Interleaved1F1BOrder({.ranks = 2, .micro_batches = 2}).status().message(),
      "parallelism.virtual_stages: interleaved_1f1b has at least 2 "
      "stages a rank, not 1; 1f1b has one");
}

TEST(Interleaved1F1B, RefusesUnevenGroups) {
  EXPECT_EQ(Interleaved1F1BOrder(
                {.ranks = 4, .micro_batches = 6, .virtual_stages = 2})
                .status()
                .message(),
            "training.global_batch_size: interleaved_1f1b on 4 ranks takes a "
            "multiple of 4 micro-batches a step from each data replica, not 6; "
            "the nearest are 4 and 8");
}

}  // namespace
}  // namespace troupe
