// The section `islands` and parallelism.islands: what they become, and what
// they do not go with; what is predicted of them.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/islands.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

JobSpec IslandsJob(int islands = 2) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 2});
  job.mutable_training()->set_global_batch_size(16);
  job.mutable_parallelism()->set_islands(islands);
  return job;
}

std::string RefusalOf(const JobSpec& job) {
  return std::string(ResolveJob(job).status().message());
}

TEST(ResolveIslands, ASectionIsFilledIn) {
  const auto job = ResolveJob(IslandsJob());
  ASSERT_TRUE(job.ok()) << job.status();
  const IslandsSpec& islands = job->islands();
  EXPECT_EQ(islands.every(), 100);
  EXPECT_EQ(islands.fragments(), 1);
  EXPECT_EQ(islands.compress(), "none");
  EXPECT_EQ(islands.outer().lr(), 0.7);
  EXPECT_EQ(islands.outer().momentum(), 0.9);
  EXPECT_EQ(job->optimizer().outer().lr(), 0.7);
  EXPECT_EQ(RanksNeeded(*job), 4);
  EXPECT_TRUE(ResolveJob(*job).ok()) << "a resolved job resolves to itself";
  const auto one = ResolveJob(IslandsJob(1));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_FALSE(one->has_islands());
  EXPECT_FALSE(one->optimizer().has_outer());
}

TEST(ResolveIslands, RefusesWhatContradicts) {
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_islands()->set_every(10);
  EXPECT_THAT(RefusalOf(job), StartsWith("islands: is for several islands"));
  EXPECT_THAT(RefusalOf(IslandsJob(0)), StartsWith("parallelism.islands: 0"));
  EXPECT_THAT(RefusalOf(IslandsJob(3)),
              StartsWith("parallelism.islands: 3 do not divide "
                         "training.global_batch_size 16"));
  job = IslandsJob(8);
  EXPECT_THAT(RefusalOf(job),
              HasSubstr("training.global_batch_size 16 / parallelism.islands 8 "
                        "= 2"));
  job = IslandsJob();
  job.mutable_islands()->set_every(0);
  EXPECT_THAT(RefusalOf(job), StartsWith("islands.every: 0"));
  job = IslandsJob();
  job.mutable_islands()->set_every(2);
  job.mutable_islands()->set_fragments(3);
  EXPECT_THAT(RefusalOf(job), StartsWith("islands.fragments: 3 fragments"));
  job = IslandsJob();
  job.mutable_islands()->set_overlap(2);
  EXPECT_THAT(RefusalOf(job), StartsWith("islands.overlap: 2: an exchange is"));
  job.mutable_islands()->set_overlap(1);
  EXPECT_EQ(ResolveJob(job)->islands().mixing(), 0.5);
  job.mutable_islands()->set_mixing(1);
  EXPECT_THAT(RefusalOf(job), StartsWith("islands.mixing: 1"));
  job = IslandsJob();
  job.mutable_islands()->set_compress("zip");
  EXPECT_THAT(RefusalOf(job), StartsWith("islands.compress: "));
  job = IslandsJob();
  job.mutable_islands()->mutable_outer()->set_momentum(1);
  EXPECT_THAT(RefusalOf(job), StartsWith("islands.outer.momentum: 1"));
  job = IslandsJob();
  job.mutable_islands()->mutable_outer()->set_lr(0);
  EXPECT_THAT(RefusalOf(job), StartsWith("islands.outer.lr: 0"));
  job = IslandsJob();
  job.mutable_optimizer()->mutable_outer()->set_lr(1);
  EXPECT_THAT(RefusalOf(job), StartsWith("optimizer.outer: is said by"));
  // Without islands there are no outer states, whatever it says.
  job = IslandsJob(1);
  job.mutable_optimizer()->mutable_outer();
  EXPECT_THAT(RefusalOf(job), StartsWith("optimizer.outer: is said by"));
  job = IslandsJob();
  job.mutable_islands()->set_every(int64_t{1} << 21);
  EXPECT_THAT(RefusalOf(job), StartsWith("islands.every: 2097152"));
}

struct Refusal {
  const char* name;
  void (*ask)(JobSpec& job);
};

const Refusal kRefusals[] = {
    {"pipedream_2bw",
     [](JobSpec& j) {
       j.mutable_parallelism()->set_pipeline(2);
       j.mutable_parallelism()->set_pipeline_schedule("pipedream_2bw");
       j.mutable_training()->set_gradient_clipping(0);
     }},
    {"fp16", [](JobSpec& j) { j.mutable_training()->set_precision("fp16"); }},
    {"parallelism.servers",
     [](JobSpec& j) { j.mutable_parallelism()->set_servers(1); }},
    {"parallelism.micro_batches",
     [](JobSpec& j) {
       j.mutable_parallelism()->set_micro_batch_split("by_speed");
     }},
    {"memory.optimizer: host",
     [](JobSpec& j) { j.mutable_memory()->set_optimizer("host"); }},
};

TEST(ResolveIslands, RefusesWhatTheyDoNotGoWith) {
  for (const Refusal& refusal : kRefusals) {
    JobSpec job = IslandsJob();
    refusal.ask(job);
    EXPECT_THAT(RefusalOf(job),
                StartsWith("parallelism.islands: does not go with"))
        << refusal.name;
    EXPECT_THAT(RefusalOf(job), HasSubstr(refusal.name));
    job.mutable_parallelism()->clear_islands();
    EXPECT_EQ(RefusalOf(job), "") << refusal.name;
  }
  JobSpec job = IslandsJob();
  job.mutable_checkpoint()->set_directory("there");
  job.mutable_elastic();
  EXPECT_THAT(RefusalOf(job), StartsWith("elastic: does not go with"));
}

TEST(Islands, AreTheOutermostAxisAndMeetInGroupsOfTheirOwn) {
  JobSpec job = IslandsJob();
  job.mutable_parallelism()->set_pipeline(2);
  const Plan plan = ExamplePlan(job);
  EXPECT_EQ(plan.mesh().axes(0).name(), "islands");
  EXPECT_EQ(RanksOfIsland(plan.mesh()), 4);
  std::vector<int> islands;
  for (int rank = 0; rank < 8; ++rank) {
    islands.push_back(IslandOf(plan.mesh(), rank));
  }
  EXPECT_THAT(islands, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  int exchange = 0;
  for (const Group& group : plan.groups()) {
    exchange += group.name() == kIslandsGroup;
  }
  EXPECT_EQ(exchange, 1);
}

// A step is in the mean as long as one without an exchange and a part of one.
TEST(Islands, PredictionSpreadsAnExchangeOverItsRound) {
  JobSpec job = IslandsJob();
  job.mutable_training()->set_global_batch_size(256);  // a longer step
  job.mutable_islands()->set_every(20);
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  for (int w = 0; w < 4; ++w) {
    LinkRate& rate = *workers[w].mutable_network()->mutable_rate();
    rate.set_latency_us(100);
    rate.set_bytes_per_second(1e7);
    if (w < 2) continue;
    workers[w].set_host("far");
    workers[w].set_memory_domain("far");
  }
  const auto plan = CompilePlan(job, workers);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const IslandsPrediction& islands = plan->prediction().islands();
  EXPECT_GT(islands.quiet_step_seconds(), 0);
  EXPECT_GT(islands.waited_seconds(), islands.exchange_seconds() / 2);
  const double mean =
      islands.quiet_step_seconds() + islands.waited_seconds() / 20;
  EXPECT_NEAR(plan->prediction().step_seconds(), mean, 0.02 * mean);
  EXPECT_EQ(islands.data_parallel_bytes(), 20 * islands.bytes_sent());
  // Hidden behind a step, it costs what a step is too short for.
  job.mutable_islands()->set_overlap(1);
  const auto hidden = CompilePlan(job, workers);
  ASSERT_TRUE(hidden.ok()) << hidden.status();
  EXPECT_LT(hidden->prediction().islands().waited_seconds(),
            0.7 * islands.waited_seconds());
  job.mutable_islands()->set_overlap(0);
  job.mutable_islands()->set_compress("bf16");
  const auto half = CompilePlan(job, workers);
  ASSERT_TRUE(half.ok()) << half.status();
  EXPECT_NEAR(static_cast<double>(half->prediction().islands().bytes_sent()),
              0.5 * static_cast<double>(islands.bytes_sent()),
              0.1 * static_cast<double>(islands.bytes_sent()));
}

}  // namespace
}  // namespace troupe
