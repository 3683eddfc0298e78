// parallelism.micro_batches and micro_batch_split.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/narrower.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/split_by_speed.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planner/unequal_workers.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Eight micro-batches of two.
JobSpec Job(const std::vector<int>& micro_batches, int data = 2) {
  JobSpec job = ExampleJob({.data = 1, .micro_batches = 8});
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_data(data);
  for (const int count : micro_batches) parallelism.add_micro_batches(count);
  return job;
}

JobSpec BySpeed(int data = 2) {
  JobSpec job = Job({}, data);
  job.mutable_parallelism()->set_micro_batch_split("by_speed");
  return job;
}

JobSpec Elastic(JobSpec job) {
  job.mutable_elastic();
  job.mutable_recovery()->set_copies(0);  // the workers have no host tier
  job.mutable_checkpoint()->set_directory("there");
  return job;
}

std::string ErrorOf(const JobSpec& job) {
  return std::string(ResolveJob(job).status().message());
}

TEST(MicroBatches, RefusesNumbersThatDoNotFit) {
  EXPECT_THAT(ErrorOf(Job({8})),
              StartsWith("parallelism.micro_batches: [8] has 1 number, and "
                         "parallelism.data is 2; give one for each replica"));
  EXPECT_THAT(ErrorOf(Job({4, 2, 2})), HasSubstr("has 3 numbers"));
  EXPECT_THAT(ErrorOf(Job({8, 0})), StartsWith("parallelism.micro_batches: 0"));
  EXPECT_THAT(ErrorOf(Job({9, -1})),
              StartsWith("parallelism.micro_batches: 9"));
  EXPECT_THAT(ErrorOf(Job({-1, 7})),
              StartsWith("parallelism.micro_batches: -1"));
  EXPECT_THAT(
      ErrorOf(Job({5, 2})),
      StartsWith("parallelism.micro_batches: [5, 2] are 7 micro-batches a "
                 "step, and training.global_batch_size 16 / "
                 "training.micro_batch_size 2 are 8; "));
  EXPECT_EQ(ErrorOf(Job({5, 3})), "");
}

TEST(MicroBatches, RefusesSplitsThatContradict) {
  JobSpec job = Job({5, 3});
  job.mutable_parallelism()->set_micro_batch_split("by_speed");
  EXPECT_THAT(ErrorOf(job), StartsWith("parallelism.micro_batch_split: by_"));
  job.mutable_parallelism()->set_micro_batch_split("fast");
  EXPECT_THAT(ErrorOf(job), StartsWith("parallelism.micro_batch_split: "));
  job.mutable_parallelism()->set_micro_batch_split("given");
  EXPECT_EQ(ErrorOf(job), "");
  job.mutable_parallelism()->clear_micro_batches();
  EXPECT_THAT(ErrorOf(job), HasSubstr("given needs parallelism.micro_batches"));
  EXPECT_THAT(ErrorOf(BySpeed(9)), StartsWith("parallelism.data: 9 replicas"));
}

// Where replicas meet within a step.
TEST(MicroBatches, RefusesWhatNeedsEqualNumbers) {
  for (const JobSpec& asked : {Job({5, 3}), BySpeed()}) {
    for (const int zero : {2, 3}) {
      JobSpec job = asked;
      job.mutable_parallelism()->set_zero(zero);
      EXPECT_THAT(ErrorOf(job), HasSubstr("does not go with parallelism.zero"));
      // Over the ranks of a sequence, they do not.
      job.mutable_parallelism()->set_context(2);
      job.mutable_parallelism()->set_zero_size(2);
      EXPECT_EQ(ErrorOf(job), "");
    }
    JobSpec job = asked;
    job.mutable_parallelism()->set_pipeline_schedule("pipedream");
    EXPECT_THAT(ErrorOf(job), HasSubstr("does not go with pipedream"));
  }
  // Equal numbers are no such split.
  JobSpec even = Job({4, 4});
  even.mutable_parallelism()->set_zero(3);
  EXPECT_EQ(ErrorOf(even), "");
  // The schedule refuses what it has not.
  JobSpec interleaved = Job({5, 3});
  interleaved.mutable_parallelism()->set_pipeline(2);
  interleaved.mutable_parallelism()->set_pipeline_schedule("interleaved_1f1b");
  EXPECT_THAT(
      std::string(
          CompilePlan(interleaved, ExampleWorkers(4)).status().message()),
      HasSubstr("interleaved_1f1b"));
}

// The check of the programs finds nothing, with whatever order replicas of one
// schedule differ in; or the schedule says what it has not.
TEST(MicroBatches, EveryScheduleTakesThemOrSaysWhy) {
  int planned = 0;
  for (const Pipeline& schedule : Pipelines()) {
    if (schedule.asynchronous) continue;
    for (const int pipeline : {1, 2, 4}) {
      for (const int zero : {0, 1}) {
        for (const std::vector<int>& counts : std::vector<std::vector<int>>{
                 {1, 2}, {8, 4}, {2, 9}, {3, 1, 3}, {16, 4}, {1, 1, 4}}) {
          const int total = std::accumulate(counts.begin(), counts.end(), 0);
          JobSpec job = ExampleJob({.micro_batches = total, .blocks = 10});
          ParallelismSpec& parallelism = *job.mutable_parallelism();
          parallelism.set_data(static_cast<int>(counts.size()));
          for (const int count : counts) parallelism.add_micro_batches(count);
          parallelism.set_pipeline(pipeline);
          parallelism.set_pipeline_schedule(std::string(schedule.name));
          parallelism.set_zero(zero);
          job.mutable_training()->set_gradient_clipping(zero);
          job.mutable_recovery();
          job.mutable_checkpoint()->set_directory("there");
          std::vector<WorkerDescription> workers =
              ExampleWorkers(RanksNeeded(*ResolveJob(job)));
          for (WorkerDescription& worker : workers) worker.clear_budgets();
          const absl::Status status = CompilePlan(job, workers).status();
          planned += status.ok() ? 1 : 0;
          EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status))
              << schedule.name << " " << pipeline << " zero " << zero << ": "
              << status.message().substr(0, 400) << " [" << counts[0] << ", "
              << counts[1];
        }
      }
    }
  }
  EXPECT_GT(planned, 150);
}

TEST(MicroBatches, FewerReplicasSplitAnew) {
  const std::vector<JobSpec> ways = NarrowerWays(Elastic(Job({5, 3})), 1);
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways[0].parallelism().data(), 1);
  EXPECT_TRUE(ways[0].parallelism().micro_batches().empty());
}

// The batch need not divide.
TEST(MicroBatches, BySpeedGoesOnWithAnyNumberOfReplicas) {
  const std::vector<JobSpec> ways = NarrowerWays(Elastic(BySpeed(4)), 3);
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways[0].parallelism().data(), 3);
  EXPECT_EQ(ways[0].parallelism().micro_batch_split(), "by_speed");
  const absl::StatusOr<Plan> plan =
      CompilePlan(ways[0], UnequalWorkers({2, 1, 1}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->derived().replica_micro_batches(), ElementsAre(4, 2, 2));
}

// Theirs are numbers of micro-batches of one size.
TEST(MicroBatches, AsManyReplicasOfFewerStagesKeepTheirNumbers) {
  JobSpec job = Elastic(Job({2, 1}));
  job.mutable_training()->set_global_batch_size(24);
  job.mutable_training()->set_micro_batch_size(8);
  job.mutable_parallelism()->set_pipeline(2);
  const std::vector<JobSpec> ways = NarrowerWays(job, 3);
  const auto kept = std::find_if(ways.begin(), ways.end(), [](const auto& way) {
    return way.parallelism().data() == 2;
  });
  ASSERT_NE(kept, ways.end());
  EXPECT_THAT(kept->parallelism().micro_batches(), ElementsAre(2, 1));
  EXPECT_EQ(kept->training().micro_batch_size(), 8);
}

// Against all splits.
TEST(SplitBySpeed, NoOtherIsFaster) {
  const std::vector<std::vector<double>> speeds = {
      {1, 1, 1}, {1, 4, 2}, {0.3, 5, 0.31}, {7, 7, 1}};
  for (const std::vector<double>& seconds : speeds) {
    const auto last = [&](const std::vector<int>& counts) {
      double most = 0;
      for (int d = 0; d < 3; ++d) most = std::max(most, counts[d] * seconds[d]);
      return most;
    };
    for (int total = 3; total < 20; ++total) {
      const std::vector<int> split = SplitBySpeed(seconds, total);
      EXPECT_EQ(std::accumulate(split.begin(), split.end(), 0), total);
      double best = last(split);
      for (int a = 1; a <= total - 2; ++a) {
        for (int b = 1; a + b < total; ++b) {
          best = std::min(best, last({a, b, total - a - b}));
        }
      }
      EXPECT_EQ(last(split), best) << total;
    }
  }
  EXPECT_THAT(SplitBySpeed({1, 3}, 16, {.least = 2, .each = 2}),
              ElementsAre(12, 4));
}

TEST(SplitBySpeed, FastReplicasDoMore) {
  const std::vector<WorkerDescription> unlike = UnequalWorkers({3, 1});
  const absl::StatusOr<Plan> plan = CompilePlan(BySpeed(), unlike);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->derived().replica_micro_batches(), ElementsAre(6, 2));
  EXPECT_THAT(plan->job().parallelism().micro_batches(), ElementsAre(6, 2));
  EXPECT_LT(plan->prediction().step_seconds(),
            0.6 * CompilePlan(Job({}), unlike)->prediction().step_seconds());
  // What is planned may be planned again.
  EXPECT_EQ(CompilePlan(plan->job(), unlike)->fingerprint(),
            plan->fingerprint());
}

TEST(SplitBySpeed, EqualReplicasDoTheSame) {
  const absl::StatusOr<Plan> plan =
      CompilePlan(BySpeed(), UnequalWorkers({1, 1.05}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->fingerprint(),
            CompilePlan(Job({}), UnequalWorkers({1, 1}))->fingerprint());
  // Where the batch does not divide, nearly.
  const absl::StatusOr<Plan> three =
      CompilePlan(BySpeed(3), UnequalWorkers({1, 1, 1}));
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_THAT(three->derived().replica_micro_batches(), ElementsAre(3, 3, 2));
}

// A replica is as fast as the slowest place of its pipeline.
TEST(SplitBySpeed, PipelinesAreReplicas) {
  for (const char* schedule : {"1f1b", "interleaved_1f1b", "zb_v", "chimera"}) {
    JobSpec job = BySpeed();
    job.mutable_training()->set_gradient_clipping(0);
    job.mutable_parallelism()->set_pipeline(2);
    job.mutable_parallelism()->set_pipeline_schedule(schedule);
    // Ranks 0 and 2 are the first replica.
    const absl::StatusOr<Plan> plan =
        CompilePlan(job, UnequalWorkers({3, 1, 3, 1}));
    ASSERT_TRUE(plan.ok()) << schedule << plan.status();
    EXPECT_THAT(plan->derived().replica_micro_batches(), ElementsAre(6, 2))
        << schedule;
  }
}

}  // namespace
}  // namespace troupe
