#include "scheduler/passes/dry_run.h"

#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/synthetic_job.h"

namespace troupe {
namespace {

// Of stages that take 1, 2 and 3 s forward, backward-input, backward-weight.
std::vector<std::vector<StepTimes>> TimesOf(const ComputeOrder& order) {
  const int ranks = static_cast<int>(order.size());
  const Draft draft = ExampleDraft(SyntheticJob({.pipeline = ranks,
                                                 .schedule = "1f1b",
                                                 .micro_batches = 4,
                                                 .forward_us = 1e6,
                                                 .backward_input_us = 2e6,
                                                 .backward_weight_us = 3e6}),
                                   "");
  return DryRun(draft, order);
}

constexpr double kHandover = 0.03;

constexpr auto kF = ComputeStep::kForward;
constexpr auto kI = ComputeStep::kBackwardInput;
constexpr auto kW = ComputeStep::kBackwardWeight;

TEST(DryRun, WaitsForTheStageBeforeAndTheStageAfter) {
  ComputeStep split = {kI, 1, 0};
  split.split = true;
  const auto times = TimesOf({{{kF, 0, 0}, {kF, 0, 1}, {kI, 0, 0}, {kW, 0, 0}},
                              {{kF, 1, 0}, split, {kW, 1, 0}}});
  EXPECT_NEAR(times[0][1].end, 2, 1e-6);
  EXPECT_NEAR(times[1][0].start, 1 + kHandover, 1e-6);
  EXPECT_NEAR(times[1][1].end, 4 + kHandover, 1e-6);
  EXPECT_NEAR(times[0][2].start, 4 + 2 * kHandover, 1e-6);
  EXPECT_NEAR(times[0][3].end, 9 + 2 * kHandover, 1e-6);
}

// What one backward pass hands on is there at its end.
TEST(DryRun, WaitsForAllOfOneBackwardPass) {
  const auto times = TimesOf({{{kF, 0, 0}, {kI, 0, 0}, {kW, 0, 0}},
                              {{kF, 1, 0}, {kI, 1, 0}, {kW, 1, 0}}});
  EXPECT_NEAR(times[1][1].end, 4 + kHandover, 1e-6);
  EXPECT_NEAR(times[1][1].gives, 7 + kHandover, 1e-6);
  EXPECT_NEAR(times[0][1].start, 7 + 2 * kHandover, 1e-6);
}

// What an earlier program has done is there at once.
TEST(DryRun, StepsAheadDoNotHoldBackThisStep) {
  ComputeStep ahead = {kF, 0, 0};
  ahead.ahead = 1;
  const auto times = TimesOf({{ahead, {kI, 0, 0}}, {{kF, 1, 0}, {kI, 1, 0}}});
  EXPECT_NEAR(times[0][0].start, 0, 1e-6);
  EXPECT_NEAR(times[0][1].start, 3 + kHandover, 1e-6);
}

// Without a barrier between programs, a rank that is done goes on.
TEST(DryRun, RunsOverlap) {
  const Draft draft = ExampleDraft(
      SyntheticJob({.pipeline = 2, .schedule = "zb_h2", .micro_batches = 8}),
      "");
  const int runs = RunsUntilSteady(draft);
  EXPECT_GT(runs, 1);
  const auto before = DryRun(draft, draft.compute_order, runs - 1);
  const auto times = DryRun(draft, draft.compute_order, runs);
  for (int rank = 0; rank < 2; ++rank) {
    // No bubble: 8 micro-batches of 3 s, and one there and back.
    EXPECT_NEAR(times[rank].back().end - before[rank].back().end,
                24 + 2 * kHandover, 1e-3);
  }
}

// check_program will name it; here it only must not hang.
TEST(DryRun, EndsWhereRanksWaitForOneAnother) {
  const auto times =
      TimesOf({{{kI, 0, 0}, {kF, 0, 0}}, {{kF, 1, 0}, {kI, 1, 0}}});
  EXPECT_GT(times[1][1].end, 0);
}

}  // namespace
}  // namespace troupe
