#include "scheduler/pipelines/refusals.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Refusals, OtherNumbersOfVirtualStages) {
  EXPECT_TRUE(CheckVirtualStages("x", 2, {.virtual_stages = 2}).ok());
  EXPECT_EQ(CheckVirtualStages("x", 2, {.virtual_stages = 3}).message(),
            "parallelism.virtual_stages: x has 2 stages a rank, not 3; leave "
            "it out");
}

TEST(Refusals, OtherNumbersOfMicroBatches) {
  EXPECT_TRUE(CheckMicroBatchMultiple("x", 4, {.micro_batches = 8}).ok());
  EXPECT_EQ(
      CheckMicroBatchMultiple("x", 4, {.ranks = 4, .micro_batches = 6})
          .message(),
      "training.global_batch_size: x on 4 ranks takes a multiple of 4 "
      "micro-batches a step from each data replica, not 6; the nearest are 4 "
      "and 8");
  EXPECT_EQ(
      CheckMicroBatchMultiple("x", 4, {.ranks = 4, .micro_batches = 3})
          .message(),
      "training.global_batch_size: x on 4 ranks takes a multiple of 4 "
      "micro-batches a step from each data replica, not 3; the nearest is 4");
}

}  // namespace
}  // namespace troupe
