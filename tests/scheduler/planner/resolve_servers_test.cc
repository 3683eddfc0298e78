// The section `servers` and parallelism.servers: what they become, and what
// they do not go with.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/narrower.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

JobSpec ServedJob(int servers = 2) {
  JobSpec job = ExampleJob({.data = 4, .micro_batches = 2});
  job.mutable_parallelism()->set_servers(servers);
  return job;
}

std::string RefusalOf(const JobSpec& job) {
  return std::string(ResolveJob(job).status().message());
}

TEST(ResolveServers, ASectionIsFilledIn) {
  const auto own = ResolveJob(ServedJob());
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->servers().mode(), "sync");
  EXPECT_EQ(own->servers().on(), "own");
  EXPECT_EQ(own->servers().push_every(), 1);
  EXPECT_EQ(own->servers().pull_every(), 1);
  EXPECT_EQ(own->parallelism().zero(), 0);
  EXPECT_EQ(RanksNeeded(*own), 6);
  EXPECT_TRUE(ResolveJob(*own).ok()) << "a resolved job resolves to itself";
  JobSpec job = ExampleJob({.data = 4});
  EXPECT_FALSE(ResolveJob(job)->has_servers());
  job.mutable_servers();
  const auto workers = ResolveJob(job);
  ASSERT_TRUE(workers.ok()) << workers.status();
  EXPECT_EQ(workers->servers().on(), "workers");
  EXPECT_EQ(workers->parallelism().zero(), 1);
  EXPECT_EQ(RanksNeeded(*workers), 4);
}

TEST(ResolveServers, RefusesModesThatAreNotThere) {
  for (const char* const mode : {"async", "bounded"}) {
    JobSpec job = ServedJob();
    job.mutable_servers()->set_mode(mode);
    EXPECT_THAT(RefusalOf(job), StartsWith("servers.mode: "));
    EXPECT_THAT(RefusalOf(job), HasSubstr("is not available"));
  }
  JobSpec job = ServedJob();
  job.mutable_servers()->set_mode("often");
  EXPECT_THAT(RefusalOf(job), StartsWith("servers.mode: "));
  job = ServedJob();
  job.mutable_servers()->set_staleness(4);
  EXPECT_THAT(RefusalOf(job),
              StartsWith("servers.staleness: is for servers.mode: bounded"));
  job = ServedJob();
  job.mutable_servers()->set_push_every(2);
  EXPECT_THAT(RefusalOf(job), StartsWith("servers.push_every: with"));
  job = ServedJob();
  job.mutable_servers()->set_pull_every(0);
  EXPECT_THAT(RefusalOf(job), StartsWith("servers.pull_every: 0"));
}

TEST(ResolveServers, RefusesWhatContradicts) {
  JobSpec job = ServedJob();
  job.mutable_servers()->set_on("workers");
  EXPECT_THAT(RefusalOf(job), StartsWith("parallelism.servers: 2 servers"));
  job = ServedJob(0);
  job.mutable_servers()->set_on("own");
  EXPECT_THAT(RefusalOf(job), StartsWith("servers.on: own needs"));
  job = ServedJob(0);
  job.mutable_servers()->set_on("clouds");
  EXPECT_THAT(RefusalOf(job), StartsWith("servers.on: "));
  job = ServedJob(0);
  job.mutable_servers()->set_on("workers");
  job.mutable_parallelism()->set_zero(3);
  EXPECT_THAT(RefusalOf(job), StartsWith("parallelism.zero: 3 is not what"));
  EXPECT_THAT(RefusalOf(ServedJob(-1)), StartsWith("parallelism.servers: -1"));
  EXPECT_THAT(RefusalOf(ServedJob(1 << 20)),
              StartsWith("parallelism.servers: "));
}

struct Refusal {
  const char* name;
  void (*ask)(JobSpec& job);
};

const Refusal kRefusals[] = {
    {"zero: 2", [](JobSpec& j) { j.mutable_parallelism()->set_zero(2); }},
    {"tensor", [](JobSpec& j) { j.mutable_parallelism()->set_tensor(2); }},
    {"context", [](JobSpec& j) { j.mutable_parallelism()->set_context(2); }},
    {"batch", [](JobSpec& j) { j.mutable_parallelism()->set_batch(2); }},
    {"expert",
     [](JobSpec& j) {
       j.mutable_model()->set_architecture("mixtral");
       j.mutable_model()->set_num_experts(4);
       j.mutable_parallelism()->set_expert(2);
     }},
    {"pipedream",
     [](JobSpec& j) {
       j.mutable_parallelism()->set_pipeline_schedule("pipedream");
       j.mutable_training()->set_gradient_clipping(0);
     }},
    {"freeze", [](JobSpec& j) { j.mutable_training()->add_freeze("*.wte.*"); }},
    {"lora", [](JobSpec& j) { j.mutable_training()->mutable_lora(); }},
    {"gradient_precision",
     [](JobSpec& j) {
       j.mutable_training()->set_precision("bf16");
       j.mutable_training()->set_gradient_precision("parameters");
     }},
};

TEST(ResolveServers, RefusesWhatItDoesNotGoWith) {
  for (const Refusal& refusal : kRefusals) {
    JobSpec job = ServedJob();
    refusal.ask(job);
    EXPECT_THAT(RefusalOf(job),
                StartsWith("parallelism.servers: does not go with"))
        << refusal.name;
    EXPECT_THAT(RefusalOf(job), HasSubstr(refusal.name));
    job.mutable_parallelism()->clear_servers();
    EXPECT_EQ(RefusalOf(job), "") << refusal.name;
  }
  JobSpec job = ServedJob();
  job.mutable_checkpoint()->set_directory("there");
  job.mutable_recovery()->set_copies(1);
  EXPECT_THAT(RefusalOf(job), StartsWith("recovery.copies: 1 does not go"));
  job.mutable_recovery()->clear_copies();
  ASSERT_EQ(RefusalOf(job), "");
  EXPECT_EQ(ResolveJob(job)->recovery().copies(), 0);
}

// An elastic job has fewer replicas, and its servers.
TEST(ResolveServers, ElasticJobsKeepTheirServers) {
  JobSpec job = ServedJob();
  job.mutable_elastic()->set_min_workers(3);
  job.mutable_checkpoint()->set_directory("there");
  std::vector<int> ranks;
  for (const JobSpec& way : NarrowerWays(job, 5)) {
    EXPECT_EQ(way.parallelism().servers(), 2);
    ranks.push_back(RanksNeeded(way));
  }
  EXPECT_THAT(ranks, ElementsAre(4, 3));
}

TEST(ResolveServers, TooFewWorkersAreNamedWithServers) {
  EXPECT_THAT(
      std::string(
          CompilePlan(ServedJob(), ExampleWorkers(5)).status().message()),
      HasSubstr("parallelism.data: 4 with parallelism.servers 2 wants 6 "
                "workers, there are 5"));
}

}  // namespace
}  // namespace troupe
