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
#include "tests/scheduler/planner/unequal_workers.h"

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

JobSpec TurnedJob(const std::string& mode = "async") {
  JobSpec job = ServedJob();
  job.mutable_servers()->set_mode(mode);
  return job;
}

// Each step is one replica's, whatever number of them there is.
TEST(ResolveServers, ReplicasTakeTurns) {
  JobSpec job = TurnedJob("bounded");
  job.mutable_training()->set_global_batch_size(
      3 * job.training().micro_batch_size());
  const auto resolved = ResolveJob(job);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->servers().staleness(), 4);
  EXPECT_TRUE(ResolveJob(*resolved).ok());
  const auto plan = CompilePlan(job, ExampleWorkers(6));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->derived().replica_micro_batches(),
              ElementsAre(3, 3, 3, 3, 0, 0));
  EXPECT_TRUE(plan->derived().takes_turns());
  EXPECT_TRUE(plan->derived().delays_gradients());
  const TrainingSpec& training = plan->job().training();
  EXPECT_EQ(plan->derived().tokens_per_step(),
            int64_t{training.global_batch_size()} * training.sequence_length());
  job = ServedJob();
  EXPECT_FALSE(CompilePlan(job, ExampleWorkers(6))->derived().takes_turns());
}

// Rates of replicas add up, unless none may be far ahead, or servers are slow.
TEST(ResolveServers, ReplicasThatTakeTurnsAddUp) {
  const auto seconds = [](const std::string& mode,
                          const std::vector<double>& speeds) {
    JobSpec job = TurnedJob(mode);
    job.mutable_parallelism()->set_data(static_cast<int>(speeds.size()) - 1);
    job.mutable_parallelism()->set_servers(1);
    const auto plan = CompilePlan(job, UnequalWorkers(speeds));
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? plan->prediction() : Prediction();
  };
  const double alone = seconds("async", {1, 100}).step_seconds();
  const Prediction async = seconds("async", {1, 1, 0.2, 100});
  EXPECT_NEAR(async.step_seconds(), alone / 2.2, 0.03 * alone);
  EXPECT_THAT(async.limited_by(), StartsWith("replicas, of which"));
  EXPECT_DOUBLE_EQ(async.ranks(0).compute_seconds(),
                   async.ranks(1).compute_seconds());
  // The slow one does a fifth as many steps, each of which takes it five times
  // as long.
  EXPECT_NEAR(async.ranks(2).compute_seconds(),
              async.ranks(0).compute_seconds(),
              0.05 * async.ranks(0).compute_seconds());
  EXPECT_NEAR(static_cast<double>(async.ranks(2).bytes_sent_per_step()),
              async.ranks(0).bytes_sent_per_step() / 5.0,
              0.05 * async.ranks(0).bytes_sent_per_step());
  const Prediction bounded = seconds("bounded", {1, 1, 0.2, 100});
  EXPECT_NEAR(bounded.step_seconds(), 5 * alone / 3, 0.2 * alone);
  EXPECT_THAT(bounded.limited_by(), StartsWith("the slowest replica"));
  const Prediction slow = seconds("async", {1, 1, 1, 0.001});
  EXPECT_GT(slow.step_seconds(), alone);
  EXPECT_THAT(slow.limited_by(), StartsWith("servers: "));
}

struct TurnsRefusal {
  const char* what;
  void (*ask)(JobSpec& job);
};

const TurnsRefusal kTurnsRefusals[] = {
    {"parallelism.pipeline",
     [](JobSpec& j) { j.mutable_parallelism()->set_pipeline(2); }},
    {"parallelism.micro_batch_split",
     [](JobSpec& j) {
       j.mutable_parallelism()->set_micro_batch_split("by_speed");
     }},
    {"training.precision: fp16",
     [](JobSpec& j) { j.mutable_training()->set_precision("fp16"); }},
    {"memory: auto", [](JobSpec& j) { j.mutable_memory()->set_mode("auto"); }},
    {"memory.optimizer",
     [](JobSpec& j) { j.mutable_memory()->set_optimizer("host"); }},
    {"memory.activations",
     [](JobSpec& j) { j.mutable_memory()->set_activations("host"); }},
};

TEST(ResolveServers, RefusesWithWhatReplicasCannotTakeTurns) {
  ASSERT_EQ(RefusalOf(TurnedJob()), "");
  for (const TurnsRefusal& refusal : kTurnsRefusals) {
    JobSpec job = TurnedJob();
    refusal.ask(job);
    EXPECT_THAT(
        RefusalOf(job),
        StartsWith(std::string("servers.mode: async does not go with ") +
                   refusal.what));
    job.mutable_servers()->set_mode("sync");
    EXPECT_EQ(RefusalOf(job), "") << refusal.what;
  }
  JobSpec job = TurnedJob();
  job.mutable_servers()->set_staleness(1);
  EXPECT_THAT(RefusalOf(job), StartsWith("servers.staleness: is for"));
  job = TurnedJob("bounded");
  job.mutable_servers()->set_staleness(-1);
  EXPECT_THAT(RefusalOf(job), StartsWith("servers.staleness: -1"));
  job = TurnedJob("sync");
  job.mutable_servers()->set_order_seed(1);
  EXPECT_THAT(RefusalOf(job), StartsWith("servers.order_seed: is for"));
  job = TurnedJob();
  job.mutable_servers()->set_pull_every(2);
  EXPECT_THAT(RefusalOf(job), StartsWith("servers.pull_every: a replica"));
  job = TurnedJob();
  job.mutable_parallelism()->clear_servers();
  EXPECT_THAT(RefusalOf(job), StartsWith("servers.mode: async needs servers"));
  std::vector<WorkerDescription> workers = ExampleWorkers(6);
  for (WorkerDescription& worker : workers) worker.mutable_gpu();
  EXPECT_THAT(std::string(CompilePlan(TurnedJob(), workers).status().message()),
              HasSubstr("servers.mode: async is for processors"));
}

TEST(ResolveServers, RefusesModesThatAreNotThere) {
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
  // Where each step is one replica's, there may be any number of these.
  job.mutable_servers()->set_mode("async");
  ranks.clear();
  for (const JobSpec& way : NarrowerWays(job, 5)) {
    ranks.push_back(RanksNeeded(way));
  }
  EXPECT_THAT(ranks, ElementsAre(5, 4, 3));
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
