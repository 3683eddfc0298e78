#include "worker/engine/step_record.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/sums.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Plan PlanOf8x16Tokens() {
  Plan plan;
  *plan.mutable_sums() = FirstSums();
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
  EXPECT_TRUE(CheckFinite(record, LossScale(TrainingSpec())).ok());
}

TEST(StepRecord, SaysTheLossOfEachSequenceWhereThePlanSumsIt) {
  Plan plan = PlanOf8x16Tokens();
  EXPECT_FALSE(MakeStepRecord(plan, {.scalars = {1, 1, 1, 0, 0}, .seconds = 1})
                   .has_sequence_losses());
  for (const char* const name : {kSequenceLossesSum, kSequenceTokensSum}) {
    Sum& sum = *plan.add_sums();
    sum.set_name(name);
    sum.set_elements(3);
    sum.set_added_by(Instruction::FORWARD);
  }
  const StepRecord record = MakeStepRecord(
      plan, {.scalars = {6, 4, 1, 0, 0, 1.5, 0, 4.5, 1, 0, 3}, .seconds = 1});
  const SequenceLosses& said = record.sequence_losses();
  EXPECT_EQ(std::vector<double>(said.losses().begin(), said.losses().end()),
            (std::vector<double>{1.5, 0, 4.5}));
  EXPECT_EQ(std::vector<int>(said.counted_tokens().begin(),
                             said.counted_tokens().end()),
            (std::vector<int>{1, 0, 3}));
}

TEST(StepRecord, MeasuresUtilizationAgainstTheDatasheets) {
  Plan plan = PlanOf8x16Tokens();
  plan.mutable_prediction()->set_datasheet_flops_per_second(4e6);
  const StepRecord record =
      MakeStepRecord(plan, {.scalars = {1, 1, 1, 0}, .seconds = 0.25});
  EXPECT_DOUBLE_EQ(record.mfu(), 0.128);
}

TEST(StepRecord, WithoutAPeakThereIsNoUtilisation) {
  Plan plan = PlanOf8x16Tokens();
  plan.clear_prediction();
  const StepRecord record =
      MakeStepRecord(plan, {.scalars = {1, 1, 1, 0}, .seconds = 1});
  EXPECT_EQ(record.mfu(), 0);
}

// All documents of a step may have one token, which predicts nothing, or none
// of its tokens may count.
TEST(StepRecord, AStepMayCountNoTarget) {
  const Plan plan = PlanOf8x16Tokens();
  const StepRecord record =
      MakeStepRecord(plan, {.scalars = {0, 0, 0, 0}, .seconds = 1});
  EXPECT_EQ(record.loss(), 0);
  EXPECT_TRUE(CheckFinite(record, LossScale(TrainingSpec())).ok());
  EXPECT_EQ(*ValidationLoss(plan, {6, 2, 0, 0}), 3);
  const absl::Status nothing = ValidationLoss(plan, {0, 0, 0, 0}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(nothing));
  EXPECT_THAT(std::string(nothing.message()),
              HasSubstr("data: validation has no token to predict"));
}

TEST(StepRecord, LossesThatAreNotFiniteAreErrors) {
  for (const Scalars& scalars :
       {Scalars{NAN, 1, 1, 0}, Scalars{INFINITY, 1, 1, 0},
        Scalars{1, 1, INFINITY, 0}, Scalars{1, 1, NAN, 0}}) {
    const StepRecord record =
        MakeStepRecord(PlanOf8x16Tokens(), {.scalars = scalars, .seconds = 1});
    EXPECT_TRUE(absl::IsFailedPrecondition(
        CheckFinite(record, LossScale(TrainingSpec()))));
  }
}

TEST(StepRecord, TheFirstStepBlamesNoLearningRate) {
  const auto diverges = [](int64_t step) {
    return std::string(CheckFinite(MakeStepRecord(PlanOf8x16Tokens(),
                                                  {.context = {.step = step},
                                                   .scalars = {NAN, 1, NAN, 0},
                                                   .seconds = 1}),
                                   LossScale(TrainingSpec()))
                           .message());
  };
  EXPECT_THAT(diverges(1), HasSubstr("nothing was updated yet"));
  EXPECT_THAT(diverges(1), Not(HasSubstr("lower optimizer.lr")));
  // Also where a run that resumed, or goes on, begins with it.
  EXPECT_THAT(diverges(376), HasSubstr("lower optimizer.lr"));
  EXPECT_THAT(diverges(376), Not(HasSubstr("nothing was updated yet")));
}

// A step that overflows, of a job whose loss is scaled: what is said of it.
absl::Status Overflows(LossScale& scale, double loss = 1) {
  const ManifestLossScale began = scale.state();
  Plan plan = PlanOf8x16Tokens();
  plan.mutable_job()->mutable_training()->set_precision("fp16");
  scale.Update(INFINITY);
  return CheckFinite(MakeStepRecord(plan, {.context = {.step = 2},
                                           .scalars = {loss, 1, INFINITY, 0},
                                           .seconds = 1,
                                           .loss_scale = began}),
                     scale);
}

TEST(StepRecord, AScaleThatNothingHelpsEndsTheJob) {
  TrainingSpec training;
  training.set_precision("fp16");
  LossScale found(training);
  int skipped = 0;
  absl::Status status;
  while (status.ok() && skipped < 100) {
    status = Overflows(found);
    ++skipped;
  }
  EXPECT_EQ(skipped, 17) << "from 2^16 to 1";
  EXPECT_NE(status.message().find("training.precision bf16"),
            absl::string_view::npos)
      << status;

  training.set_loss_scale(1e30);
  LossScale fixed(training);
  for (int step = 1; step < 20; ++step) {
    ASSERT_TRUE(Overflows(fixed).ok()) << step;
  }
  fixed.Update(1);
  for (int step = 1; step < 20; ++step) {
    ASSERT_TRUE(Overflows(fixed).ok()) << step;
  }
  EXPECT_EQ(Overflows(fixed),
            absl::FailedPreconditionError(
                "training.loss_scale: 1e+30, with which gradients of each of "
                "the last steps overflowed, so that none of them changed a "
                "weight; use a smaller one, or leave it out, so that it is "
                "found"));
  // A loss that is none is no matter of its scale.
  LossScale first(training);
  EXPECT_NE(Overflows(first, NAN).message().find("diverged"),
            absl::string_view::npos);
}

}  // namespace
}  // namespace troupe
