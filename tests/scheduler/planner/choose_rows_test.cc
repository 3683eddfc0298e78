// Rows that are for some groups and exchanges: which of them are chosen.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/planner/on_hosts.h"

namespace troupe {
namespace {

// Where latency is much of it, each of many hosts talks to few others: with
// halves where bytes count, too, and with all of it up a tree where they do
// not.
TEST(ChooseRows, ManyHostsTakeFewMessages) {
  std::vector<WorkerDescription> workers = OnHosts("abcdefghijklmnop");
  for (WorkerDescription& worker : workers) {
    worker.mutable_network()->mutable_rate()->set_latency_us(500);
  }
  Plan plan = *CompilePlan(DataJob(16), workers);
  const Group& data = GroupNamed(plan, "data");
  ASSERT_GT(plan.prediction().exchanges_size(), 0);
  std::set<std::string> rows;
  for (const ExchangePrediction& exchange : plan.prediction().exchanges()) {
    rows.insert(exchange.row());
    EXPECT_LE(exchange.seconds(), exchange.flat_seconds());
    if (exchange.row() == "flat") continue;
    EXPECT_LT(exchange.seconds(), exchange.flat_seconds());
    EXPECT_EQ(exchange.levels_size(), 4);
  }
  EXPECT_EQ(rows.count("two_level") + rows.count("blueconnect"), 0u)
      << "each has a host to itself";
  EXPECT_TRUE(rows.count("halving") + rows.count("tree") > 0)
      << plan.prediction().exchanges(0).DebugString() << data.why_flat();
}

JobSpec UlyssesJob(const std::string& all_to_all) {
  JobSpec job = ExampleJob({});
  job.mutable_model()->set_num_attention_heads(4);
  job.mutable_parallelism()->set_context(4);
  job.mutable_parallelism()->set_context_method("ulysses");
  if (!all_to_all.empty()) {
    job.mutable_communication()->set_all_to_all(all_to_all);
  }
  return job;
}

// To the byte: on each level the blocks for its other places.
TEST(ChooseRows, AllToAllsMayGoOverLevels) {
  const auto plan = CompilePlan(UlyssesJob("two_level"), OnHosts("aabb"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  int found = 0;
  for (const ExchangePrediction& exchange : plan->prediction().exchanges()) {
    if (exchange.collective() != ALL_TO_ALL) continue;
    ++found;
    EXPECT_EQ(exchange.row(), "two_level");
    ASSERT_EQ(exchange.levels_size(), 2);
    EXPECT_EQ(exchange.levels(0).bytes(), exchange.bytes() / 2);
    EXPECT_EQ(exchange.levels(1).bytes(), exchange.bytes() / 2);
  }
  EXPECT_GT(found, 0);
  const auto flat = CompilePlan(UlyssesJob("flat"), OnHosts("aabb"));
  const auto chosen = CompilePlan(UlyssesJob(""), OnHosts("aabb"));
  ASSERT_TRUE(flat.ok() && chosen.ok()) << flat.status() << chosen.status();
  for (const ExchangePrediction& exchange : chosen->prediction().exchanges()) {
    EXPECT_LE(exchange.seconds(), exchange.flat_seconds() * (1 + 1e-9));
  }
  const absl::Status status =
      CompilePlan(UlyssesJob("tree"), OnHosts("aabb")).status();
  EXPECT_TRUE(absl::StartsWith(status.message(), "communication.all_to_all: "))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "no blocks of members"))
      << status;
}

// Rows of experts: how many, only their two ends know.
TEST(ChooseRows, BlocksOfUnlikeSizesAreFlat) {
  JobSpec job = ExampleJob({.data = 4});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("mixtral");
  model.set_intermediate_size(64);
  model.set_num_experts(4);
  job.mutable_parallelism()->set_expert(4);
  const auto plan = CompilePlan(job, OnHosts("aabb"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  int found = 0;
  for (const ExchangePrediction& exchange : plan->prediction().exchanges()) {
    if (exchange.collective() != ALL_TO_ALL) continue;
    ++found;
    EXPECT_EQ(exchange.row(), "flat") << exchange.DebugString();
  }
  EXPECT_GT(found, 0);
  job.mutable_communication()->set_all_to_all("two_level");
  const absl::Status status = CompilePlan(job, OnHosts("aabb")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "of unlike sizes")) << status;
}

}  // namespace
}  // namespace troupe
