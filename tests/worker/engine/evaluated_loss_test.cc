#include "worker/engine/evaluated_loss.h"

#include <cmath>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/sums.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

Plan PlanOfSteps(int64_t steps) {
  Plan plan;
  *plan.mutable_sums() = FirstSums();
  plan.mutable_job()->set_evaluate(true);
  plan.mutable_job()->mutable_data()->set_validation("/v.tokens");
  plan.mutable_job()->mutable_training()->set_steps(steps);
  return plan;
}

StepRecord RecordOf(int64_t step) {
  StepRecord record;
  record.set_step(step);
  return record;
}

// Loss, tokens, squared norm, flags.
TEST(EvaluatedLoss, GivesEachTargetTheSameWeight) {
  const Plan plan = PlanOfSteps(2);
  EvaluatedLoss loss;
  StepRecord first = RecordOf(1);
  ASSERT_TRUE(loss.Add(plan, {30, 10, 0, 0, 0}, first).ok());
  EXPECT_DOUBLE_EQ(first.loss(), 3);
  EXPECT_EQ(first.counted_tokens(), 10);
  StepRecord last = RecordOf(2);
  ASSERT_TRUE(loss.Add(plan, {12, 2, 0, 0, 0}, last).ok());
  EXPECT_DOUBLE_EQ(last.loss(), 3.5) << "not the mean of 3 and 6";
  EXPECT_EQ(last.counted_tokens(), 12);
}

TEST(EvaluatedLoss, NamesTheFirstSequenceThatIsNotFinite) {
  Plan plan = PlanOfSteps(2);
  plan.mutable_job()->mutable_training()->set_global_batch_size(3);
  EvaluatedLoss loss;
  StepRecord record = RecordOf(2);
  for (const double each : {1.0, static_cast<double>(NAN), HUGE_VAL}) {
    record.mutable_sequence_losses()->add_losses(each);
  }
  const absl::Status refused = loss.Add(plan, {NAN, 3, 0, 0, 0}, record);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("(the first is window 4, counted from 0)"));
}

TEST(EvaluatedLoss, MayHaveAStepThatPredictsNothing) {
  const Plan plan = PlanOfSteps(2);
  EvaluatedLoss loss;
  StepRecord record = RecordOf(1);
  ASSERT_TRUE(loss.Add(plan, {0, 0, 0, 0, 0}, record).ok());
  EXPECT_EQ(record.loss(), 0);
  EXPECT_EQ(record.counted_tokens(), 0);
  record = RecordOf(2);
  const absl::Status nothing = loss.Add(plan, {0, 0, 0, 0, 0}, record);
  EXPECT_EQ(nothing.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(nothing.message()),
              HasSubstr("data.validation: /v.tokens has no token to predict"));
}

TEST(EvaluatedLoss, RefusesALossThatIsNotFinite) {
  for (const double sum : {static_cast<double>(NAN), HUGE_VAL}) {
    EvaluatedLoss loss;
    StepRecord record = RecordOf(1);
    const absl::Status refused =
        loss.Add(PlanOfSteps(2), {sum, 5, 0, 0, 0}, record);
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("no finite loss"));
  }
}

}  // namespace
}  // namespace troupe
