#include "scheduler/search/search.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/planner.h"
#include "scheduler/search/estimate.h"
#include "scheduler/search/plan_job.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/search/drawn_space.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

JobSpec OpenJob(int batch = 16, int blocks = 4) {
  JobSpec job = ExampleJob({.blocks = blocks});
  job.clear_parallelism();
  job.mutable_parallelism()->set_mode("auto");
  job.mutable_training()->set_global_batch_size(batch);
  job.mutable_training()->clear_micro_batch_size();
  return job;
}

void SetMemory(int64_t bytes, std::vector<WorkerDescription>& workers) {
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(bytes);
  }
}

// Within 2 % of the best of everything that the space has.
TEST(ChooseParallelism, IsAsGoodAsSimulatingEverything) {
  constexpr int kSpaces = 4;
  constexpr int kWorkersMax = 3;
  double worst = 1;
  double too_small = 0;
  double too_large = 0;
  int64_t simulated = 0;
  int64_t plans = 0;
  int fitting = 0;
  for (uint64_t seed = 1; seed <= kSpaces; ++seed) {
    const DrawnSpace space = DrawSpace(seed, kWorkersMax);
    SCOPED_TRACE(space.name);
    const Everything everything = SimulateEverything(space);
    const Chosen chosen = ChooseIn(space);
    ASSERT_EQ(chosen.best.has_value(), everything.best.has_value())
        << chosen.refusal << "\n  best: "
        << (everything.best.has_value() ? everything.best->way : "none");
    EXPECT_EQ(everything.bounds_broken, 0) << everything.broken;
    EXPECT_LE(everything.least_too_long, 0.05);
    too_small = std::max(too_small, everything.too_small);
    too_large = std::max(too_large, everything.too_large);
    EXPECT_LE(everything.too_large, kEstimateError);
    plans += everything.plans;
    simulated += chosen.simulated;
    if (!chosen.best.has_value()) continue;
    ++fitting;
    const double ratio = chosen.best->seconds / everything.best->seconds;
    EXPECT_LE(ratio, 1.02) << chosen.best->way
                           << "\n  best: " << everything.best->way;
    worst = std::max(worst, ratio);
  }
  EXPECT_GE(fitting, kSpaces / 2);
  std::printf(
      "%d spaces: worst ratio %.4f, %ld of %ld plans simulated, estimates up "
      "to "
      "%.0f %% too small and %.0f %% too large\n",
      kSpaces, worst, simulated, plans, 100 * too_small, 100 * too_large);
}

TEST(ChooseParallelism, EqualInputsGiveEqualPlans) {
  const DrawnSpace space = DrawSpace(2, 4);
  const PlannedJob first = PlanJob(space.job, space.workers).value();
  const PlannedJob second = PlanJob(space.job, space.workers).value();
  EXPECT_EQ(first.planned.plan.SerializeAsString(),
            second.planned.plan.SerializeAsString());
  EXPECT_EQ(first.explanation.SerializeAsString(),
            second.explanation.SerializeAsString());
}

// Planned again, the job that is stored is the plan that was chosen.
TEST(ChooseParallelism, TheChoiceIsAJob) {
  const std::vector<WorkerDescription> workers = ExampleWorkers(4);
  const PlannedJob planned = PlanJob(OpenJob(), workers).value();
  EXPECT_FALSE(planned.job.parallelism().has_mode());
  const std::vector<WorkerDescription> used(
      workers.begin(), workers.begin() + RanksNeeded(planned.job));
  EXPECT_EQ(CompilePlan(planned.job, used).value().fingerprint(),
            planned.planned.plan.fingerprint());
}

TEST(ChooseParallelism, AFixedFieldStays) {
  JobSpec job = OpenJob();
  job.mutable_parallelism()->set_tensor(2);
  for (const PlannedJob& planned : {PlanJob(job, ExampleWorkers(4)).value(),
                                    PlanJob(job, ExampleWorkers(3)).value()}) {
    EXPECT_EQ(planned.job.parallelism().tensor(), 2);
    for (const ExplainedWay& way : planned.explanation.ways()) {
      EXPECT_EQ(way.fields().parallelism().tensor(), 2);
    }
  }
  job = OpenJob();
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_pipeline_schedule("gpipe");
  job.mutable_training()->set_micro_batch_size(2);
  const PlannedJob planned = PlanJob(job, ExampleWorkers(4)).value();
  EXPECT_EQ(planned.job.parallelism().pipeline_schedule(), "gpipe");
  EXPECT_EQ(planned.job.parallelism().pipeline(), 2);
  EXPECT_EQ(planned.job.training().micro_batch_size(), 2);
}

TEST(ChooseParallelism, RefusesWithWhatWouldFit) {
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  SetMemory(40'000, workers);
  const absl::Status refused = PlanJob(OpenJob(), workers).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(
      std::string(refused.message()),
      AllOf(StartsWith("parallelism: auto: none of "), HasSubstr("closest is"),
            HasSubstr("memory: auto"), HasSubstr(" workers like these")));
  SetMemory(100, workers);
  EXPECT_THAT(std::string(PlanJob(OpenJob(), workers).status().message()),
              AllOf(HasSubstr("or a smaller model"),
                    Not(HasSubstr("workers like these"))));
}

TEST(ChooseParallelism, RefusesWhatIsWrongWhateverIsChosen) {
  JobSpec job = OpenJob();
  job.mutable_parallelism()->set_tensor(3);
  EXPECT_THAT(std::string(PlanJob(job, ExampleWorkers(3)).status().message()),
              HasSubstr("model.num_attention_heads"));
  EXPECT_EQ(PlanJob(job, ExampleWorkers(2)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  job = OpenJob();
  job.mutable_parallelism()->set_mode("best");
  EXPECT_THAT(std::string(PlanJob(job, ExampleWorkers(2)).status().message()),
              StartsWith("parallelism: "));
  job = OpenJob();
  job.set_objective("tokens_per_dollar");
  EXPECT_THAT(std::string(PlanJob(job, ExampleWorkers(2)).status().message()),
              HasSubstr("dollars_per_hour"));
  job = OpenJob();
  job.set_objective("speed");
  EXPECT_THAT(std::string(PlanJob(job, ExampleWorkers(2)).status().message()),
              StartsWith("objective: "));
}

// Half of them are twice as fast, and get twice the samples, or nearly so.
TEST(ChooseParallelism, SplitsTheBatchOverUnlikeReplicas) {
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  for (int i = 0; i < 4; ++i) {
    Calibration& calibration = *workers[i].mutable_calibration();
    calibration.mutable_matmul(0)->set_flops_per_second(i < 2 ? 2e7 : 1e7);
    calibration.mutable_loopback()->set_bytes_per_second(1e12);
  }
  JobSpec job = OpenJob(/*batch=*/24);
  job.mutable_parallelism()->set_data(4);
  const PlannedJob planned = PlanJob(job, workers).value();
  const auto& counts = planned.job.parallelism().micro_batches();
  ASSERT_EQ(counts.size(), 4);
  EXPECT_EQ(counts[0], 2 * counts[2]);
  EXPECT_EQ(counts[1], 2 * counts[3]);
  EXPECT_EQ(
      planned.explanation.ways(0).fields().parallelism().micro_batch_split(),
      "by_speed");
  EXPECT_EQ(CompilePlan(planned.job, workers).value().fingerprint(),
            planned.planned.plan.fingerprint());
  job.mutable_parallelism()->set_micro_batch_split("even");
  const PlannedJob even = PlanJob(job, workers).value();
  EXPECT_LT(planned.planned.plan.prediction().step_seconds(),
            0.8 * even.planned.plan.prediction().step_seconds());
}

// Tables are large by their vocabulary: by columns their gradients are not
// summed. Blocks are small, and exchange nothing where each rank has samples.
TEST(ChooseParallelism, TablesAndBlocksMayBeSharedOtherwise) {
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  for (WorkerDescription& worker : workers) {
    worker.mutable_calibration()->mutable_loopback()->set_bytes_per_second(1e8);
  }
  JobSpec job = OpenJob(/*batch=*/4);
  job.mutable_model()->set_vocab_size(20'000);
  const PlannedJob planned = PlanJob(job, workers).value();
  const ParallelismSpec& chosen = planned.job.parallelism();
  ASSERT_EQ(chosen.strategies_size(), 1) << chosen.ShortDebugString();
  EXPECT_EQ(chosen.tensor(), 2);
  EXPECT_EQ(chosen.strategies(0).batch(), 2);
  EXPECT_EQ(chosen.strategies(0).units(0), "blocks");
  EXPECT_GT(planned.explanation.search().with_strategies(), 0);
  double least = 1e9;  // of all units alike
  for (const ExplainedWay& way : planned.explanation.ways()) {
    if (!way.fits() || way.fields().parallelism().strategies_size() > 0) {
      continue;
    }
    least = std::min(least, way.step_seconds());
  }
  EXPECT_LT(planned.explanation.ways(0).step_seconds(), least);
  EXPECT_EQ(CompilePlan(planned.job, workers).value().fingerprint(),
            planned.planned.plan.fingerprint());
  job.mutable_parallelism()->set_tensor(2);
  EXPECT_TRUE(
      PlanJob(job, workers).value().job.parallelism().strategies().empty())
      << "all units as the job says";
}

// Of workers that cost, the step that is cheapest; or as few as fit.
TEST(ChooseParallelism, HasObjectives) {
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  for (WorkerDescription& worker : workers) worker.set_dollars_per_hour(2);
  JobSpec job = OpenJob();
  EXPECT_EQ(RanksNeeded(PlanJob(job, workers).value().job), 4);
  job.set_objective("fewest_workers");
  EXPECT_EQ(RanksNeeded(PlanJob(job, workers).value().job), 1);
  job.set_objective("tokens_per_dollar");
  const PlannedJob cheapest = PlanJob(job, workers).value();
  for (const ExplainedWay& way : cheapest.explanation.ways()) {
    EXPECT_LE(way.tokens_per_dollar(),
              cheapest.explanation.ways(0).tokens_per_dollar());
  }
}

}  // namespace
}  // namespace troupe
