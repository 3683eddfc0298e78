#include "proto/plan/precision.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Precision, Bf16ComputesWithHalfAndKeepsMasters) {
  TrainingSpec training;
  training.set_precision("bf16");
  EXPECT_EQ(ComputeType(training), BF16);
  EXPECT_TRUE(HasMasterWeights(training));
  EXPECT_EQ(BytesOfElement(ComputeType(training)), 2);
  training.set_precision("f32");
  EXPECT_EQ(ComputeType(training), F32);
  EXPECT_FALSE(HasMasterWeights(training));
  EXPECT_EQ(BytesOfElement(ComputeType(training)), 4);
}

}  // namespace
}  // namespace troupe
