#include "scheduler/simulate/simulate.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/traced_ranks.h"
#include "scheduler/simulate/adapters.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/effort.h"
#include "scheduler/simulate/run_programs.h"
#include "tests/proto/plan/made_roles.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

// A TRAIN program for each rank; all are in group 0.
Plan PlanOf(const std::vector<std::string>& programs) {
  Plan plan = PlanOfPlaces(static_cast<int>(programs.size()));
  for (size_t r = 0; r < programs.size(); ++r) {
    Program& program = *plan.mutable_roles(r)->add_programs();
    program = *ParseProgram(programs[r]);
    program.set_kind(Program::TRAIN);
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
  EXPECT_EQ(timeline.ranks(0).spans(3).lane(), LaneNamed("COMPUTE"));
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
        return int64_t{instruction.lane() == LaneNamed("COMPUTE") ? 10 : 0};
      });
  EXPECT_EQ(step.period_ns, 20);
}

// Rank 1 has work left when the sum is done, rank 0 begins its next step.
TEST(SimulateSteps, APipelinesRanksBeginAStepWhenTheyCan) {
  Plan plan = PlanOf({"F u0 m0\nR u0 g0 ^0", "F u0 m0\nR u0 g0 ^0\nO u0 ^1"});
  const InstructionTime ten = [](int, const Instruction&) {
    return int64_t{10};
  };
  const SteadyStep step = SimulateSteps(plan, ten);
  EXPECT_EQ(step.period_ns, 30);
  // Since rank 0 began: rank 1 is 10 behind.
  EXPECT_EQ(step.ranks[0].instructions[0].start, 0);
  EXPECT_EQ(step.ranks[1].instructions[0].start, 10);
}

TEST(StepTimeline, LastsAsLongAsTheCostModelSays) {
  const Plan plan = ExamplePlan(ExampleJob({.micro_batches = 2}));
  const CostModel costs(plan, ExampleWorkers(1));
  const Timeline timeline =
      StepTimeline(plan, PredictStep(plan, ExampleWorkers(1)));
  const Program& train = plan.roles(0).programs(0);
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

// Of many ranks those that are traced when they run.
TEST(StepTimeline, IsOfTheTracedRanks) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 150}));
  const Timeline timeline =
      StepTimeline(plan, PredictStep(plan, ExampleWorkers(150)));
  ASSERT_EQ(timeline.ranks_size(), kTracedRanksMax);
  EXPECT_EQ(timeline.ranks(0).rank(), 0);
  for (const RankTimeline& rank : timeline.ranks()) {
    EXPECT_TRUE(IsTraced(rank.rank(), 150)) << rank.rank();
    EXPECT_EQ(rank.spans_size(), plan.roles(0).programs(0).instructions_size());
  }
}

// Ranks that differ are simulated one by one, as far as that is bounded.
TEST(PredictStep, OfTooManyMachinesOneStandsForItsRole) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 4}));
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  for (int r = 0; r < 4; ++r) {
    workers[r].set_host(absl::StrCat("host", r));
    workers[r].mutable_calibration()->set_instruction_overhead_us(1 + r);
  }
  const CostModel costs(plan, workers);
  const SteadyStep each = PredictStep(plan, workers, costs);
  EXPECT_EQ(each.ranks.size(), 4u);
  EXPECT_FALSE(each.one_for_each_role);
  const SteadyStep bounded = PredictStep(plan, workers, costs, 1);
  EXPECT_EQ(bounded.ranks.size(), 1u);
  EXPECT_TRUE(bounded.one_for_each_role);
  EXPECT_EQ(bounded.like, std::vector<int>({0, 0, 0, 0}));
  EXPECT_NEAR(static_cast<double>(bounded.period_ns) / each.period_ns, 1, 0.1);
}

TEST(StepTimeline, IsBounded) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 4}));
  const SteadyStep step = PredictStep(plan, ExampleWorkers(4));
  const int spans = plan.roles(0).programs(0).instructions_size();
  EXPECT_EQ(StepTimeline(plan, step).ranks_size(), 4);
  EXPECT_EQ(StepTimeline(plan, step, 3 * spans).ranks_size(), 3);
  EXPECT_EQ(StepTimeline(plan, step, 0).ranks_size(), 1);
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
  const Program& train = plan.roles(0).programs(0);
  const SteadyStep apart = PredictStep(plan, workers);
  EXPECT_EQ(apart.ranks[0].instructions[0].end,
            std::llround(costs.CostOf(0, train.instructions(0)).total() * 1e9));
}

// Of two hosts, the one with fewer cores is what a step waits for, whichever of
// them has rank 0.
TEST(PredictStep, HostsOfOtherCoresAreNotAlike) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 8}));
  const auto period = [&](int cores_a, int cores_b) {
    std::vector<WorkerDescription> workers = ExampleWorkers(8);
    for (int r = 0; r < 8; ++r) {
      workers[r].set_host(r < 4 ? "a" : "b");
      workers[r].set_host_cores(r < 4 ? cores_a : cores_b);
    }
    return PredictStep(plan, workers).period_ns;
  };
  EXPECT_EQ(period(1, 3), period(3, 1));
  EXPECT_GT(period(1, 3), period(3, 3));
}

// One rank stands for all that do the same; and a step is what it would be if
// each were run.
TEST(PredictStep, RunsOneOfThoseThatAreAlike) {
  JobSpec job = ExampleJob({.data = 4, .micro_batches = 4});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_tensor(2);
  const Plan plan = ExamplePlan(job);
  for (const int hosts : {1, 2, 4, 16}) {
    for (const bool slow : {false, true}) {
      std::vector<WorkerDescription> workers = ExampleWorkers(16);
      for (int r = 0; r < 16; ++r) {
        workers[r].set_host(absl::StrCat("h", r * hosts / 16));
        workers[r].set_host_cores(2);
        if (r != 5 || !slow) continue;
        for (MatmulRate& rate :
             *workers[r].mutable_calibration()->mutable_matmul()) {
          rate.set_flops_per_second(rate.flops_per_second() / 3);
        }
      }
      const SteadyStep step = PredictStep(plan, workers);
      EXPECT_EQ(step.like.size(), 16u);
      // Of a ring over two hosts a rank at its end uses the network to send,
      // the one behind it to receive. Over four hosts that is the ring of a
      // stage; over two, of the tied embedding.
      const size_t alike = hosts == 2 ? 6 : hosts == 4 ? 4 : 2;
      EXPECT_LE(step.ranks.size(), slow ? 16u : alike) << hosts << " hosts";
      // The same with each rank for itself.
      const CostModel costs(plan, workers);
      const ProgramsRun all = RunPrograms(
          plan, EachRank(plan),
          [&](int rank, const Instruction& instruction) {
            const Cost cost = costs.CostOf(rank, instruction);
            const bool computes = instruction.lane() == LaneNamed("COMPUTE");
            return EffortOf(cost, computes);
          },
          {.seats = costs.seats(),
           .adapters = UsesOf(costs.adapters(), EachRank(plan)),
           .runs_max = 12,
           .is_enough = nullptr});
      const int last = static_cast<int>(all.ends.size()) - 1;
      EXPECT_NEAR(static_cast<double>(step.period_ns),
                  static_cast<double>(all.ends[last] - all.ends[last - 1]),
                  2e-3 * static_cast<double>(step.period_ns))
          << hosts << " hosts, " << slow;
    }
  }
}

}  // namespace
}  // namespace troupe
