#include "scheduler/simulate/simulate.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "proto/plan/program_text.h"
#include "scheduler/simulate/cost_model.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// A TRAIN program for each rank; all are in group 0.
Plan PlanOf(const std::vector<std::string>& programs) {
  Plan plan;
  Group& all = *plan.add_groups();
  for (const std::string& text : programs) {
    RankPlan& rank = *plan.add_ranks();
    rank.set_rank(plan.ranks_size() - 1);
    all.add_ranks(rank.rank());
    *rank.add_programs() = *ParseProgram(text);
    rank.mutable_programs(0)->set_kind(Program::TRAIN);
  }
  return plan;
}

std::string Spans(const RankTimeline& rank) {
  std::string text;
  for (const Span& span : rank.spans()) {
    text += std::to_string(span.start_ns()) + "-" +
            std::to_string(span.end_ns()) + " ";
  }
  return text;
}

TEST(Simulate, LanesRunAtOnceAndInOrder) {
  const Plan plan = PlanOf({"L m0\nF u0 m0 ^0\nL m1\nF u0 m1 ^2"});
  const Timeline timeline =
      Simulate(plan, Program::TRAIN, [](int, const Instruction& i) {
        return int64_t{i.kind() == Instruction::FORWARD ? 10 : 4};
      });
  EXPECT_TRUE(timeline.predicted());
  EXPECT_EQ(Spans(timeline.ranks(0)), "0-4 4-14 4-8 14-24 ");
  EXPECT_EQ(timeline.ranks(0).spans(3).micro_batch(), 1);
  EXPECT_EQ(timeline.ranks(0).spans(3).lane(), COMPUTE);
}

// A collective begins for each member when it gets there, and ends for all
// together: the last to come, plus the slowest member's time.
TEST(Simulate, CollectivesWaitForTheLast) {
  const std::string text = "F u0 m0\nR u0 g0 ^0\nO u0 ^1";
  const Timeline timeline = Simulate(PlanOf({text, text}), Program::TRAIN,
                                     [](int rank, const Instruction& i) {
                                       if (i.kind() == Instruction::FORWARD)
                                         return int64_t{rank == 0 ? 3 : 9};
                                       return int64_t{rank == 0 ? 2 : 5};
                                     });
  EXPECT_EQ(Spans(timeline.ranks(0)), "0-3 3-14 14-16 ");
  EXPECT_EQ(Spans(timeline.ranks(1)), "0-9 9-14 14-19 ");
}

TEST(Simulate, AHeldLaneHoldsBackWhatFollows) {
  const Timeline timeline = Simulate(
      PlanOf({"R u1 g0\nR u0 g0", "F u0 m0\nR u1 g0 ^0\nR u0 g0"}),
      Program::TRAIN, [](int, const Instruction&) { return int64_t{7}; });
  EXPECT_EQ(Spans(timeline.ranks(0)), "0-14 14-21 ");
}

TEST(Simulate, ATransferIsDrawnWithItsPeer) {
  const Plan plan = PlanOf({"F u0 m0\nS u0 m0 p1 g0 ^0", "V u0 m0 p0 g0"});
  const Timeline timeline = Simulate(
      plan, Program::TRAIN, [](int, const Instruction&) { return int64_t{5}; });
  EXPECT_EQ(Spans(timeline.ranks(1)), "0-10 ");
  EXPECT_EQ(timeline.ranks(1).spans(0).peer(), 0);
  EXPECT_EQ(timeline.ranks(0).spans(1).peer(), 1);
  EXPECT_FALSE(timeline.ranks(0).spans(0).has_peer());
}

// The stages pass on without end: what a step takes is what the slowest rank
// does in it, however long the first is underway.
TEST(SimulateSteps, OverlappingStepsLastAsLongAsTheSlowestRank) {
  Plan plan = PlanOf(
      {"F u0 m0\nS u0 m0 p1 g0 ^0", "V u0 m0 p0 g0\nF u1 m0 ^0\nF u2 m0"});
  plan.mutable_derived()->set_report_lag(1);
  const SteadyStep step =
      SimulateSteps(plan, [](int, const Instruction& instruction) {
        return int64_t{instruction.lane() == COMPUTE ? 10 : 0};
      });
  EXPECT_EQ(step.period_ns, 20);
}

// Rank 1 has work left when the sum is done, rank 0 begins its next step.
TEST(SimulateSteps, APipelinesRanksBeginAStepWhenTheyCan) {
  Plan plan = PlanOf({"F u0 m0\nR u0 g0 ^0", "F u0 m0\nR u0 g0 ^0\nO u0 ^1"});
  const InstructionTime ten = [](int, const Instruction&) {
    return int64_t{10};
  };
  EXPECT_EQ(SimulateSteps(plan, ten).period_ns, 30);  // one step, as it stands
  Axis& pipeline = *plan.mutable_mesh()->add_axes();
  pipeline.set_name("pipeline");
  pipeline.set_size(2);
  const SteadyStep step = SimulateSteps(plan, ten);
  EXPECT_EQ(step.period_ns, 30);
  // Since rank 0 began: rank 1 is 10 behind.
  EXPECT_EQ(step.ranks[0].instructions[0].start, 0);
  EXPECT_EQ(step.ranks[1].instructions[0].start, 10);
}

TEST(PredictTimeline, LastsAsLongAsTheCostModelSays) {
  const Plan plan = ExamplePlan(ExampleJob({.micro_batches = 2}));
  const CostModel costs(plan, ExampleWorkers(1));
  const Timeline timeline = PredictTimeline(plan, ExampleWorkers(1));
  const Program& train = plan.ranks(0).programs(0);
  ASSERT_EQ(timeline.ranks(0).spans_size(), train.instructions_size());
  for (int i = 0; i < train.instructions_size(); ++i) {
    const Span& span = timeline.ranks(0).spans(i);
    EXPECT_EQ(span.instruction(), i);
    EXPECT_EQ(span.kind(), train.instructions(i).kind());
    EXPECT_EQ(
        span.end_ns() - span.start_ns(),
        std::llround(costs.CostOf(0, train.instructions(i)).total() * 1e9));
  }
}

// Where ranks share cores, only those that compute do.
TEST(PredictStep, RanksOfAHostShareItsCores) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 4}));
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  const int64_t alone = PredictStep(plan, workers).period_ns;
  for (WorkerDescription& worker : workers) worker.set_host_cores(2);
  const int64_t crowded = PredictStep(plan, workers).period_ns;
  EXPECT_GT(crowded, alone);
  EXPECT_LT(crowded, 2 * alone);  // transfers take no core
  for (int r = 0; r < 4; ++r) workers[r].set_host(r < 2 ? "a" : "b");
  const CostModel costs(plan, workers);
  const Program& train = plan.ranks(0).programs(0);
  const SteadyStep apart = PredictStep(plan, workers);
  EXPECT_EQ(apart.ranks[0].instructions[0].end,
            std::llround(costs.CostOf(0, train.instructions(0)).total() * 1e9));
}

}  // namespace
}  // namespace troupe
