#include "worker/model/dropout_masks.h"

#include "gtest/gtest.h"
#include "tests/worker/model/model_runner.h"

namespace troupe {
namespace {

UnitOptions Options() {
  return {.model = Gpt2Model({}),
          .build = {.shape = {.sequences = 2, .sequence_length = 13},
                    .dropout = 0.5,
                    .seed = 11}};
}

TEST(DropoutMasksTest, AreIndexedByThePlaceInTheGlobalBatch) {
  const DropoutMask mask = HiddenMask(
      Options(), 5, {.step = 8, .first_sample = 3, .training = true});
  EXPECT_EQ(mask.first_element, uint64_t{3 * 13 * 24});
  EXPECT_EQ(mask.stream.site, 5u);
  EXPECT_EQ(mask.stream.step, 8u);
  EXPECT_EQ(mask.stream.seed, 11u);
  EXPECT_EQ(mask.probability, 0.5f);
  const AttentionDropout attention = AttentionMask(
      Options(), 6, {.step = 8, .first_sample = 3, .training = true});
  EXPECT_EQ(attention.first_sample, 3);
  EXPECT_EQ(attention.stream.site, 6u);
  EXPECT_EQ(attention.probability, 0.5f);
}

TEST(DropoutMasksTest, DropNothingOutsideOfTraining) {
  EXPECT_EQ(HiddenMask(Options(), 5, {.step = 8}).probability, 0.0f);
  EXPECT_EQ(AttentionMask(Options(), 5, {.step = 8}).probability, 0.0f);
}

}  // namespace
}  // namespace troupe
