#include "clients/verify/judge.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StepRecord Step(int64_t number, double loss, double grad_norm = 1) {
  StepRecord step;
  step.set_step(number);
  step.set_loss(loss);
  step.set_grad_norm(grad_norm);
  return step;
}

// Two runs of three steps that agree in everything.
JudgeOptions Equal() {
  return {.steps = 3,
          .run = {Step(1, 4), Step(2, 3), Step(3, 2)},
          .reference = {Step(1, 4), Step(2, 3), Step(3, 2)},
          .tensors = {{.name = "a"}, {.name = "b"}}};
}

TEST(Judge, EqualRunsAreTheSame) {
  const Judgement judgement = Judge(Equal());
  EXPECT_TRUE(judgement.same);
  EXPECT_EQ(judgement.steps.size(), 3u);
  EXPECT_EQ(judgement.figures,
            "loss 0.0e+00 of 1.0e-05, norm of gradients 0.0e+00 of 1.0e-03, "
            "gradients 0.0e+00 of 1.0e-03, weights 0.0e+00 of 1.0e-04");
}

TEST(Judge, EachDistanceCounts) {
  const auto verdict = [](auto change) {
    JudgeOptions options = Equal();
    change(options);
    return Judge(options);
  };
  const auto loss = verdict([](auto& o) { o.run[1].set_loss(3.003); });
  EXPECT_FALSE(loss.same);
  EXPECT_THAT(loss.figures, HasSubstr("loss 1.0e-03 of 1.0e-05"));
  EXPECT_NEAR(loss.steps[1].loss, 1e-3, 1e-9);
  EXPECT_EQ(loss.steps[1].step, 2);
  const auto norm = verdict([](auto& o) { o.run[2].set_grad_norm(2); });
  EXPECT_FALSE(norm.same) << "clipped, the gradients would be the same";
  EXPECT_THAT(norm.figures, HasSubstr("norm of gradients 1.0e+00"));
  EXPECT_FALSE(verdict([](auto& o) { o.tensors[1].gradient = 2e-3; }).same);
  EXPECT_FALSE(verdict([](auto& o) { o.tensors[1].weights = 2e-4; }).same);
  EXPECT_TRUE(verdict([](auto& o) {
                o.run[1].set_loss(3 + 2e-5);
                o.run[1].set_grad_norm(1 + 9e-4);
                o.tensors[1].weights = 9e-5;
                o.tensors[0].gradient = 9e-4;
              }).same);
}

// Whichever step it is, and whichever follow.
TEST(Judge, ANumberThatIsNoneIsNotTheSame) {
  for (int step = 0; step < 3; ++step) {
    JudgeOptions options = Equal();
    options.run[step].set_loss(kNan);
    const Judgement judgement = Judge(options);
    EXPECT_FALSE(judgement.same) << step;
    EXPECT_EQ(judgement.diverged, 0);
    options = Equal();
    options.run[step].set_grad_norm(step == 0 ? INFINITY : kNan);
    EXPECT_FALSE(Judge(options).same) << step;
  }
}

TEST(Judge, OneRankThatDivergesProvesNothing) {
  JudgeOptions options = Equal();
  for (auto* steps : {&options.run, &options.reference}) {
    (*steps)[1].set_loss(kNan);
    (*steps)[2].set_loss(kNan);
  }
  const Judgement judgement = Judge(options);
  EXPECT_FALSE(judgement.same);
  EXPECT_EQ(judgement.diverged, 2);
}

// In fp16 the loss scale is found by steps that overflow, on any plan.
void Skip(StepRecord& step) {
  step.set_skipped(true);
  step.set_grad_norm(INFINITY);
}

TEST(Judge, OfStepsThatBothSkippedLossesAreCompared) {
  JudgeOptions options = Equal();
  Skip(options.run[0]);
  Skip(options.reference[0]);
  options.reference[0].set_grad_norm(kNan);
  Judgement judgement = Judge(options);
  EXPECT_TRUE(judgement.same) << judgement.figures;
  EXPECT_TRUE(judgement.steps[0].skipped);
  EXPECT_THAT(judgement.figures, HasSubstr("of 1 step that both skipped"));
  options.run[0].set_loss(5);
  EXPECT_FALSE(Judge(options).same);
  options.run[0].set_loss(4);
  options.run[1].set_grad_norm(2);
  EXPECT_FALSE(Judge(options).same);
  options.run[1].set_grad_norm(1);
  options.tensors[0].weights = 1;
  judgement = Judge(options);
  EXPECT_FALSE(judgement.same);
  EXPECT_FALSE(judgement.within);
}

TEST(Judge, StepsThatAllOverflowProveNothing) {
  JudgeOptions options = Equal();
  for (auto* steps : {&options.run, &options.reference}) {
    for (StepRecord& step : *steps) Skip(step);
  }
  const Judgement judgement = Judge(options);
  EXPECT_FALSE(judgement.same);
  EXPECT_TRUE(judgement.within);
  EXPECT_FALSE(judgement.updated);
  EXPECT_EQ(judgement.parted, 0);
}

// From there on they train differently, whatever the plan is.
TEST(Judge, AStepThatOneOfThemSkippedEndsTheComparison) {
  for (const bool of_run : {false, true}) {
    JudgeOptions options = Equal();
    Skip((of_run ? options.run : options.reference)[1]);
    options.run[2].set_loss(7);
    options.tensors[0].weights = 1;
    const Judgement judgement = Judge(options);
    EXPECT_FALSE(judgement.same);
    EXPECT_EQ(judgement.parted, 2);
    EXPECT_TRUE(judgement.within);
    EXPECT_EQ(judgement.figures,
              "loss 0.0e+00 of 1.0e-05, norm of gradients 0.0e+00 of 1.0e-03");
    // What was apart before is apart.
    options.run[0].set_grad_norm(2);
    EXPECT_FALSE(Judge(options).within);
    options.run[0].set_grad_norm(1);
    options.run[1].set_loss(8);
    EXPECT_FALSE(Judge(options).within);
  }
}

TEST(Judge, StepsThatAreNotThereAreNotTheSame) {
  JudgeOptions options = Equal();
  options.run.clear();
  options.reference.clear();
  EXPECT_FALSE(Judge(options).same) << "neither reported anything";
  options = Equal();
  options.run.pop_back();
  const Judgement judgement = Judge(options);
  EXPECT_FALSE(judgement.same);
  ASSERT_EQ(judgement.steps.size(), 3u);
  EXPECT_EQ(judgement.steps[2].loss, INFINITY);
  // By their numbers, not their places.
  options = Equal();
  options.run = {Step(2, 4), Step(3, 3), Step(4, 2)};
  EXPECT_FALSE(Judge(options).same);
  options = Equal();
  options.tensors.clear();
  EXPECT_FALSE(Judge(options).same) << "nothing was compared";
  options = Equal();
  options.steps = 0;
  EXPECT_FALSE(Judge(options).same);
}

TEST(ToleranceOf, Bf16IsCoarser) {
  EXPECT_GT(ToleranceOf("bf16").loss, ToleranceOf("f32").loss);
  EXPECT_EQ(ToleranceOf("").loss, ToleranceOf("f32").loss);
}

}  // namespace
}  // namespace troupe
