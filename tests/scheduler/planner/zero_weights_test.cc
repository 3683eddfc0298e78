// parallelism.zero_weights and zero_split.
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "proto/plan/copies.h"
#include "proto/plan/fields.h"
#include "proto/plan/groups.h"
#include "proto/plan/memory.h"
#include "proto/plan/roles.h"
#include "scheduler/planner/narrower.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/weights_by_memory.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

JobSpec Job(int data, int zero, const std::vector<int>& weights) {
  JobSpec job = ExampleJob({.data = data});
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_zero(zero);
  for (const int weight : weights) parallelism.add_zero_weights(weight);
  return job;
}

std::string ErrorOf(const JobSpec& job) {
  return std::string(ResolveJob(job).status().message());
}

TEST(ZeroWeights, RefusesWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf(Job(2, 0, {3, 1})),
              StartsWith("parallelism.zero_weights: is for slices over "
                         "replicas; set parallelism.zero to 1, 2 or 3"));
  EXPECT_THAT(
      ErrorOf(Job(2, 1, {3})),
      StartsWith("parallelism.zero_weights: [3] has 1 number, and there "
                 "are 2 replicas of parallelism.data"));
  EXPECT_THAT(ErrorOf(Job(2, 1, {3, 0})),
              StartsWith("parallelism.zero_weights: 0"));
  EXPECT_THAT(ErrorOf(Job(2, 1, {3, 1000001})),
              StartsWith("parallelism.zero_weights: 1000001"));
  JobSpec job = Job(4, 2, {3, 1, 1, 3});
  job.mutable_parallelism()->set_zero_size(2);
  EXPECT_THAT(ErrorOf(job),
              HasSubstr("each 2 neighbouring replicas have all slices, so the "
                        "weights repeat after 2"));
  job.mutable_parallelism()->set_zero_size(1);
  EXPECT_THAT(ErrorOf(job), HasSubstr("slices are over ranks of one replica"));
  job = Job(2, 1, {3, 1});
  job.mutable_parallelism()->set_zero_split("by_memory");
  EXPECT_THAT(ErrorOf(job), StartsWith("parallelism.zero_split: by_memory "
                                       "leaves nothing to "));
  job = Job(2, 1, {});
  job.mutable_parallelism()->set_zero_split("given");
  EXPECT_THAT(ErrorOf(job), HasSubstr("given needs parallelism.zero_weights"));
  job.mutable_parallelism()->set_zero_split("by_size");
  EXPECT_THAT(ErrorOf(job), StartsWith("parallelism.zero_split: "));
  job = Job(2, 0, {3, 1});
  job.mutable_parallelism()->set_servers(1);
  EXPECT_THAT(ErrorOf(job), StartsWith("parallelism.zero_weights: "));
  std::vector<int> unlike;
  for (int i = 0; i < 40; ++i) unlike.push_back(i + 1);
  job = Job(40, 1, unlike);
  EXPECT_THAT(ErrorOf(job), HasSubstr("at most 1024 replicas and 32 different "
                                      "weights"));
}

TEST(ZeroWeights, EqualOnesAreEvenSlices) {
  const absl::StatusOr<JobSpec> job = ResolveJob(Job(4, 3, {7, 7, 7, 7}));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->parallelism().zero_weights(), IsEmpty());
  EXPECT_EQ(job->parallelism().zero_split(), "even");
  EXPECT_EQ(ExamplePlan(*job).roles_size(),
            ExamplePlan(Job(4, 3, {})).roles_size());
}

// A job with another number of replicas has even slices.
TEST(ZeroWeights, AreOfSoManyReplicas) {
  JobSpec job = Job(4, 1, {4, 2, 1, 1});
  job.mutable_elastic();
  job.mutable_recovery()->set_copies(0);  // the workers have no host tier
  job.mutable_checkpoint()->set_directory("there");
  const std::vector<JobSpec> ways = NarrowerWays(job, 2);
  ASSERT_FALSE(ways.empty());
  for (const JobSpec& way : ways) {
    EXPECT_THAT(way.parallelism().zero_weights(), IsEmpty());
    EXPECT_TRUE(ResolveJob(way).ok()) << ResolveJob(way).status();
  }
}

TEST(ZeroWeights, GroupsThatDealSayThem) {
  JobSpec job = Job(4, 3, {1, 4, 1, 4});
  job.mutable_parallelism()->set_zero_size(2);
  const Plan plan = ExamplePlan(job);
  int weighted = 0;
  for (const Group& group : plan.groups()) {
    if (group.weights().empty()) continue;
    ++weighted;
    EXPECT_EQ(SpansText(group), "data by 2") << group.name();
    EXPECT_THAT(group.weights(), ElementsAre(1, 4));
  }
  EXPECT_EQ(weighted, 2) << "of those who scatter, and who gather";
  ASSERT_EQ(plan.roles_size(), 2);
  EXPECT_EQ(RoleText(plan.roles(0)), "pipeline 0 data 1,3");
}

TEST(ZeroWeights, FaultsAreFound) {
  const Plan plan = ExamplePlan(Job(4, 2, {1, 4, 1, 4}));
  ASSERT_EQ(CheckPrograms(plan), absl::OkStatus());
  const auto fault = [&plan](const auto& plant) {
    Plan faulty = plan;
    for (Group& group : *faulty.mutable_groups()) {
      if (!group.weights().empty()) plant(group);
    }
    return std::string(CheckPrograms(faulty).message());
  };
  EXPECT_THAT(fault([](Group& group) { group.set_weights(2, 3); }),
              HasSubstr(" rank 2 has weight 3 and rank 0 1"));
  EXPECT_THAT(fault([](Group& group) { group.set_weights(2, 0); }),
              HasSubstr("want one of 1 to "));
  EXPECT_THAT(fault([](Group& group) { group.add_weights(2); }),
              HasSubstr("has weights [1, 4, 1, 4, 2]"));
  // Slices of other sizes than what buffers have room for.
  EXPECT_NE(fault([](Group& group) { group.clear_weights(); }), "");
}

// Ranks of one role may hold the copies of ranks with other weights: all copies
// are as large as the largest.
TEST(ZeroWeights, CopiesOfTheStateAreOfOneSize) {
  JobSpec job = Job(4, 1, {1, 4, 1, 1});
  job.mutable_recovery()->set_copies(1);
  const Plan plan = ExamplePlan(job);
  EXPECT_EQ(CheckPrograms(plan), absl::OkStatus());
  ASSERT_EQ(plan.roles_size(), 2);
  EXPECT_EQ(StateCopyBytes(plan, plan.roles(0)),
            StateCopyBytes(plan, plan.roles(1)));
}

std::vector<WorkerDescription> WithDevices(const std::vector<int64_t>& bytes) {
  std::vector<WorkerDescription> workers =
      ExampleWorkers(static_cast<int>(bytes.size()));
  for (size_t w = 0; w < workers.size(); ++w) {
    workers[w].clear_budgets();
    TierBudget& budget = *workers[w].add_budgets();
    budget.set_tier(DEVICE);
    budget.set_bytes(bytes[w]);
  }
  return workers;
}

// What a rank stores of an even plan: slices, and all else.
struct Stored {
  double slices = 0;
  double rest = 0;
};
Stored StoredWith(const JobSpec& job) {
  const absl::StatusOr<Plan> plan = CompilePlan(job, ExampleWorkers(2));
  EXPECT_TRUE(plan.ok()) << plan.status();
  Stored stored;
  stored.slices =
      static_cast<double>(PredictedBytes(*plan, 0, "optimizer_moments"));
  stored.rest =
      static_cast<double>(BytesIn(RoleOf(*plan, 0), DEVICE)) - stored.slices;
  return stored;
}

TEST(ZeroWeights, FollowMemoryWhereTheJobSaysSo) {
  JobSpec job = Job(2, 1, {});
  job.mutable_recovery()->set_copies(0);
  const auto [slices, rest] = StoredWith(job);
  const auto workers = WithDevices({static_cast<int64_t>(rest + 1.6 * slices),
                                    static_cast<int64_t>(rest + 0.5 * slices)});
  EXPECT_THAT(std::string(CompilePlan(job, workers).status().message()),
              HasSubstr("memory"));
  job.mutable_parallelism()->set_zero_split("by_memory");
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->job().parallelism().zero_weights(), ElementsAre(16, 5));
  EXPECT_EQ(plan->job().parallelism().zero_split(), "given");
  EXPECT_EQ(CheckPrograms(*plan), absl::OkStatus());
  // Workers alike have even slices.
  const absl::StatusOr<Plan> even = CompilePlan(job, ExampleWorkers(2));
  ASSERT_TRUE(even.ok()) << even.status();
  EXPECT_THAT(even->job().parallelism().zero_weights(), IsEmpty());
}

// A job that evaluates has no program of training.
TEST(ZeroWeights, FollowMemoryOfAnEvaluation) {
  JobSpec job;
  job.set_name("evaluation");
  job.set_evaluate(true);
  *job.mutable_model() = ExampleJob({}).model();
  job.mutable_data()->set_validation("/v.tokens");
  job.mutable_training()->set_steps(1);
  job.mutable_training()->set_global_batch_size(4);
  job.mutable_training()->set_micro_batch_size(2);
  job.mutable_parallelism()->set_data(2);
  job.mutable_parallelism()->set_zero(3);
  job.mutable_parallelism()->set_zero_split("by_memory");
  const int64_t bytes = int64_t{1} << 40;
  const absl::StatusOr<Plan> plan =
      CompilePlan(job, WithDevices({bytes, bytes / 4}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->job().parallelism().zero_weights(), ElementsAre(16, 3));
  EXPECT_EQ(CheckPrograms(*plan), absl::OkStatus());
}

TEST(ZeroWeights, AreEvenWhereThoseByMemoryDoNotDo) {
  JobSpec job = Job(2, 1, {});
  job.mutable_recovery()->set_copies(0);
  job.mutable_parallelism()->set_zero_split("by_memory");
  const absl::StatusOr<JobSpec> resolved = ResolveJob(job);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const int64_t bytes = int64_t{1} << 40;
  const auto workers = WithDevices({bytes, bytes / 4});
  const BuildPlan even = [&workers](const JobSpec& other) {
    return CompilePlan(other, workers);
  };
  int refused = 0;
  const BuildPlan refuses = [&](const JobSpec& other) -> absl::StatusOr<Plan> {
    if (other.parallelism().zero_weights().empty()) return even(other);
    ++refused;
    return FieldError("parallelism.zero_weights", "matrices do not fit");
  };
  const absl::StatusOr<Plan> plan = ByMemory(workers, even, refuses)(*resolved);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(refused, 1);
  EXPECT_THAT(plan->job().parallelism().zero_weights(), IsEmpty());
  EXPECT_EQ(plan->job().parallelism().zero_split(), "even");
}

// `memory: auto` takes them where nothing else fits.
TEST(ZeroWeights, AreChosenWhereNothingElseFits) {
  JobSpec job = Job(2, 1, {});
  job.mutable_recovery()->set_copies(0);
  const auto [slices, rest] = StoredWith(job);
  job.mutable_memory()->set_mode("auto");
  job.mutable_memory()->mutable_recompute()->set_mode("none");
  job.mutable_memory()->set_loss_chunk_tokens(0);
  const auto workers = WithDevices({static_cast<int64_t>(rest + 1.6 * slices),
                                    static_cast<int64_t>(rest + 0.5 * slices)});
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->job().parallelism().zero_weights(), ElementsAre(16, 5));
  EXPECT_THAT(plan->prediction().chosen_memory(),
              HasSubstr("parallelism.zero_split: by_memory"));
  // What is given stays.
  job.mutable_parallelism()->set_zero(0);
  EXPECT_THAT(std::string(CompilePlan(job, workers).status().message()),
              HasSubstr("memory"));
}

}  // namespace
}  // namespace troupe
