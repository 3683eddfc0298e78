#include "worker/engine/step_record.h"

#include <cmath>

#include "gtest/gtest.h"

namespace troupe {
namespace {

Plan PlanOf8x16Tokens() {
  Plan plan;
  plan.mutable_job()->mutable_training()->set_global_batch_size(8);
  plan.mutable_derived()->set_tokens_per_step(128);
  plan.mutable_derived()->set_model_flops_per_token(1000);
  plan.mutable_prediction()->set_peak_flops_per_second(1e6);
  return plan;
}

TEST(StepRecord, TurnsScalarsIntoNumbersForPeople) {
  const StepRecord record = MakeStepRecord(
      PlanOf8x16Tokens(),
      {.context = {.step = 3, .samples_before = 16, .learning_rate = 0.5},
       .scalars = {256.0, 128.0, 9.0, 0.0},
       .seconds = 0.25});
  EXPECT_EQ(record.step(), 3);
  EXPECT_DOUBLE_EQ(record.loss(), 2.0);
  EXPECT_DOUBLE_EQ(record.grad_norm(), 3.0);
  EXPECT_DOUBLE_EQ(record.learning_rate(), 0.5);
  EXPECT_DOUBLE_EQ(record.tokens_per_second(), 512.0);
  EXPECT_DOUBLE_EQ(record.mfu(), 0.512);
  EXPECT_EQ(record.samples_consumed(), 24);
  EXPECT_FALSE(record.has_validation_loss());
  EXPECT_TRUE(CheckFinite(record).ok());
}

TEST(StepRecord, WithoutAPeakThereIsNoUtilisation) {
  Plan plan = PlanOf8x16Tokens();
  plan.clear_prediction();
  const StepRecord record =
      MakeStepRecord(plan, {.scalars = {1, 1, 1, 0}, .seconds = 1});
  EXPECT_EQ(record.mfu(), 0);
}

TEST(StepRecord, LossesThatAreNotFiniteAreErrors) {
  for (const Scalars& scalars :
       {Scalars{NAN, 1, 1, 0}, Scalars{INFINITY, 1, 1, 0},
        Scalars{1, 1, INFINITY, 0}, Scalars{1, 1, NAN, 0}}) {
    const StepRecord record =
        MakeStepRecord(PlanOf8x16Tokens(), {.scalars = scalars, .seconds = 1});
    EXPECT_TRUE(absl::IsFailedPrecondition(CheckFinite(record)));
  }
}

}  // namespace
}  // namespace troupe
