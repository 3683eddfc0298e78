#include "scheduler/planner/narrower.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/synthetic_job.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobSpec Elastic(JobSpec job, int min_workers = 1) {
  job.mutable_elastic()->set_min_workers(min_workers);
  job.mutable_checkpoint()->set_directory("/checkpoints");
  return job;
}

// "data x pipeline x context x tensor, micro-batch"
std::vector<std::string> Texts(const JobSpec& job, int workers) {
  std::vector<std::string> texts;
  for (const JobSpec& way : NarrowerWays(job, workers)) {
    const JobSpec resolved = ResolveJob(way).value();
    const ParallelismSpec& p = resolved.parallelism();
    texts.push_back(absl::StrCat(p.data(), "x", p.pipeline(), "x", p.context(),
                                 "x", p.tensor(), " ",
                                 resolved.training().micro_batch_size()));
    EXPECT_EQ(resolved.training().global_batch_size(),
              ResolveJob(job)->training().global_batch_size());
  }
  return texts;
}

TEST(NarrowerWays, OnlyOfElasticJobs) {
  EXPECT_THAT(NarrowerWays(ExampleJob({.data = 4}), 3), IsEmpty());
}

TEST(NarrowerWays, FewerReplicasDoTheSameBatch) {
  JobSpec job = Elastic(ExampleJob({.data = 4, .micro_batch_size = 3}), 2);
  job.mutable_training()->set_global_batch_size(12);
  // Of 12 sequences three replicas do 4 each: micro-batches of 3 do not divide.
  EXPECT_THAT(Texts(job, 3), ElementsAre("3x1x1x1 2", "2x1x1x1 3"));
  EXPECT_THAT(Texts(job, 2), ElementsAre("2x1x1x1 3"));
  EXPECT_THAT(Texts(job, 1), IsEmpty());
  EXPECT_EQ(Texts(job, 9), Texts(job, 3)) << "fewer than the job's own";
}

TEST(NarrowerWays, RanksThatAreLeftShareTheExperts) {
  JobSpec job = Elastic(ExampleJob({.data = 8}));
  job.mutable_model()->set_architecture("mixtral");
  job.mutable_model()->set_num_experts(8);
  job.mutable_parallelism()->set_expert(4);
  job.mutable_training()->set_global_batch_size(48);
  std::vector<std::string> texts;
  for (const JobSpec& way : NarrowerWays(job, 7)) {
    const ParallelismSpec p = ResolveJob(way)->parallelism();
    texts.push_back(absl::StrCat(p.data(), " / ", p.expert()));
  }
  EXPECT_THAT(texts, ElementsAre("6 / 2", "4 / 4", "3 / 1", "2 / 2", "1 / 1"));
}

// Those of tensor stay as they are; with fewer of data, fewer share them.
TEST(NarrowerWays, RanksOfSeveralFieldsThatAreLeftShareTheExperts) {
  JobSpec job = Elastic(ExampleJob({.data = 4}));
  job.mutable_model()->set_architecture("mixtral");
  job.mutable_model()->set_num_experts(8);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_tensor(2);
  parallelism.set_sequence_parallel(true);
  parallelism.set_expert(8);
  parallelism.set_expert_slack(2);
  job.mutable_training()->set_global_batch_size(48);
  std::vector<std::string> texts;
  for (const JobSpec& way : NarrowerWays(job, 7)) {
    const ParallelismSpec p = ResolveJob(way)->parallelism();
    texts.push_back(absl::StrCat(p.data(), " x ", p.tensor(), " / ", p.expert(),
                                 " in ", p.expert_slack()));
  }
  EXPECT_THAT(texts, testing::IsSupersetOf({"2 x 2 / 4 in 2", "1 x 2 / 2 in 2"}));
}

TEST(NarrowerWays, FullReplicasKeepTheirStrategies) {
  JobSpec job = Elastic(ExampleJob({.data = 2}), 2);
  job.mutable_model()->set_tie_word_embeddings(false);
  job.mutable_parallelism()->set_pipeline(2);
  for (const int stage : {0, 1}) {
    StrategySpec& strategy = *job.mutable_parallelism()->add_strategies();
    strategy.set_stage(stage);
    (stage == 0 ? strategy.set_tensor(2) : strategy.set_batch(2));
  }
  EXPECT_EQ(RanksNeeded(job), 8);
  const std::vector<JobSpec> ways = NarrowerWays(job, 7);
  ASSERT_GT(ways.size(), 1u);
  EXPECT_EQ(RanksNeeded(ways[0]), 4);
  EXPECT_EQ(ways[0].parallelism().strategies_size(), 2);
  for (JobSpec way : ways) {
    way.mutable_recovery()->set_copies(0);  // for which there is no memory
    const auto plan = CompilePlan(way, ExampleWorkers(RanksNeeded(way)));
    EXPECT_TRUE(plan.ok()) << plan.status();
    const ParallelismSpec shared = ResolveJob(way)->parallelism();
    const bool full = shared.pipeline() == 2 && shared.tensor() == 2;
    EXPECT_EQ(way.parallelism().strategies_size(), full ? 2 : 0);
  }
}

TEST(NarrowerWays, ReplicasGoBeforeStagesAndThoseBeforeCuts) {
  JobSpec job = Elastic(ExampleJob({.data = 2}));
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_tensor(2);
  job.mutable_parallelism()->set_sequence_parallel(true);
  const int micro = ResolveJob(job)->training().micro_batch_size();
  const auto with = [micro](const char* sizes) {
    return absl::StrCat(sizes, " ", micro);
  };
  // A batch of 4 micro-batches: neither 3 nor 5 replicas.
  EXPECT_THAT(Texts(job, 3), ElementsAre(with("1x1x1x2"), with("1x2x1x1"),
                                         with("2x1x1x1"), with("1x1x1x1")));
  EXPECT_THAT(Texts(job, 5).front(), with("1x2x1x2"));
}

TEST(NarrowerWays, WhereAPipelineIsTooLongThereMayBeMoreReplicas) {
  JobSpec job = Elastic(ExampleJob({.data = 1}));
  job.mutable_training()->set_global_batch_size(12);
  job.mutable_parallelism()->set_pipeline(4);
  EXPECT_THAT(Texts(job, 3).front(), HasSubstr("1x3x1x1"));
  EXPECT_THAT(Texts(job, 3)[1], HasSubstr("3x1x1x1"));
}

TEST(NarrowerWays, SlicesGoOverThoseThatAreLeft) {
  JobSpec job = Elastic(ExampleJob({.data = 4}));
  job.mutable_parallelism()->set_zero(3);
  job.mutable_parallelism()->set_zero_size(2);
  const std::vector<JobSpec> ways = NarrowerWays(job, 2);
  ASSERT_EQ(ways.size(), 2);
  EXPECT_EQ(ResolveJob(ways[0])->parallelism().zero_size(), 2);
  EXPECT_EQ(ResolveJob(ways[1])->parallelism().zero_size(), 1);
}

TEST(NarrowerWays, WhatIsForGathersGoesWithThem) {
  JobSpec job = Elastic(ExampleJob({.data = 1}));
  job.mutable_training()->set_global_batch_size(8);
  job.mutable_model()->set_num_attention_heads(2);
  job.mutable_parallelism()->set_tensor(8);
  job.mutable_parallelism()->set_tensor_method("3d");
  job.mutable_memory()->set_unsharded_bytes(1 << 20);
  const std::vector<JobSpec> ways = NarrowerWays(job, 7);
  ASSERT_FALSE(ways.empty());
  EXPECT_FALSE(ways[0].memory().has_unsharded_bytes());
}

TEST(NarrowerWays, EachCanBePlanned) {
  JobSpec job = Elastic(ExampleJob({.data = 4}));
  for (const JobSpec& way : NarrowerWays(job, 3)) {
    const std::vector<WorkerDescription> workers(RanksNeeded(way));
    EXPECT_TRUE(CompilePlan(way, workers).ok()) << way.ShortDebugString();
  }
}

std::string Refusal(const JobSpec& job) {
  return std::string(ResolveJob(job).status().message());
}

TEST(ResolveJob, AnElasticJobRecovers) {
  JobSpec job = Elastic(ExampleJob({.data = 4}));
  job.mutable_elastic()->clear_min_workers();
  const JobSpec resolved = ResolveJob(job).value();
  EXPECT_EQ(resolved.elastic().min_workers(), 1);
  EXPECT_EQ(resolved.recovery().copies(), 1);
}

// Of a thousand replicas few numbers divide the batch, and only they are tried.
TEST(NarrowerWays, AreFoundAmongManyWorkers) {
  const JobSpec job =
      Elastic(SyntheticJob({.data = 1000, .micro_batches = 7, .units = 1000}));
  EXPECT_EQ(RanksNeeded(ResolveJob(NarrowerWays(job, 999).at(0)).value()), 875);
}

TEST(ResolveJob, UnitsWithoutStateAreNotCopied) {
  JobSpec job = SyntheticJob({.pipeline = 4, .micro_batches = 4});
  job.mutable_recovery();
  EXPECT_EQ(ResolveJob(job)->recovery().copies(), 0);
  EXPECT_TRUE(CompilePlan(job, ExampleWorkers(4)).ok());
  job.mutable_recovery()->set_copies(1);
  EXPECT_THAT(Refusal(job), HasSubstr("recovery.copies: of a synthetic unit"));
}

TEST(ResolveJob, UnitsWithoutStateAreNotDealt) {
  JobSpec job = SyntheticJob({.pipeline = 2, .micro_batches = 4});
  job.mutable_parallelism()->set_data(2);
  for (const int zero : {1, 2, 3}) {
    job.mutable_parallelism()->set_zero(zero);
    EXPECT_THAT(Refusal(job),
                HasSubstr("parallelism.zero: of a synthetic unit"));
  }
  job.mutable_model()->add_parameter_bytes(4096);
  EXPECT_TRUE(ResolveJob(job).ok()) << Refusal(job);
}

TEST(ResolveJob, RefusesWhatCannotBeElastic) {
  EXPECT_THAT(Refusal(Elastic(ExampleJob({.data = 4}), 5)),
              HasSubstr("elastic.min_workers: 5"));
  JobSpec job = Elastic(ExampleJob({.data = 4}));
  job.mutable_checkpoint()->clear_directory();
  EXPECT_THAT(Refusal(job), HasSubstr("give checkpoint.directory"));
  job = Elastic(ExampleJob({}));
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_pipeline_schedule("pipedream");
  EXPECT_THAT(Refusal(job), HasSubstr("elastic: with pipedream"));
}

}  // namespace
}  // namespace troupe
