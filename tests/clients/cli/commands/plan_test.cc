#include <stdlib.h>

#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class PlanTest : public CommandTestBase {};

// With the real planner it is tested in tests/cluster.
TEST_F(PlanTest, RefusesAWrongFileBeforeItAsksAnyone) {
  const std::string file = File("bad_plan.yaml", "parallelism: {dta: 4}\n");
  const CommandOutcome outcome = RunCommand({"plan", file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "troupe: " + file +
                             ":1:15: parallelism.dta: no such field; did you "
                             "mean data?\n");
}

TEST_F(PlanTest, PlansForARunningCluster) {
  const std::string file = File("cluster_plan.yaml", "name: demo\n");
  const CommandOutcome outcome = Ask({"plan", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("plan of demo, fingerprint", 0), 0);
  scheduler_.refusal = absl::InvalidArgumentError("name: too plain");
  EXPECT_EQ(Ask({"plan", file}).err,
            "troupe: " + file + ":1:7: name: too plain\n");
  EXPECT_EQ(Ask({"plan", file, "--workers", "2"}).code, 2);
  EXPECT_EQ(Ask({"plan", file, "--host-memory", "2GiB"}).code, 2)
      << "the cluster's workers say what they have";
}

TEST_F(PlanTest, PrintsUnitsThatAGraphReads) {
  const std::string file = File(
      "units.yaml",
      "model: {architecture: gpt2, num_hidden_layers: 2, hidden_size: 8, "
      "num_attention_heads: 2, vocab_size: 16, max_position_embeddings: 4}\n");
  const CommandOutcome outcome = RunCommand({"plan", file, "--units"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("repeat: 2"), std::string::npos) << outcome.out;
  File("printed.graph", outcome.out);
  const std::string graph =
      File("graph.yaml", "model: {graph: printed.graph}\n");
  // Printed once more it is the same.
  EXPECT_EQ(RunCommand({"plan", graph, "--units"}).out, outcome.out);
  File("printed.graph", outcome.out + "unit { name: \"head\" }\n");
  const CommandOutcome twice = RunCommand({"plan", graph, "--units"});
  EXPECT_EQ(twice.code, 1);
  EXPECT_NE(twice.err.find("there are two units \"head\""), std::string::npos)
      << twice.err;
  EXPECT_EQ(RunCommand({"plan", file, "--units", "--json"}).code, 2);
}

TEST_F(PlanTest, ExplainsForARunningCluster) {
  const std::string file = File("explained.yaml", "name: demo\n");
  const CommandOutcome outcome = Ask({"plan", file, "--explain"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("  as it is\n"), std::string::npos) << outcome.out;
  EXPECT_EQ(Ask({"plan", file, "--explain", "--json"}).out.rfind("{\n", 0), 0);
  EXPECT_EQ(Ask({"plan", file, "--explain", "--programs"}).code, 2);
  const CommandOutcome alone = Ask({"plan", file, "--picture", "x.svg"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(alone.err.rfind("troupe: --picture draws what --explain compares; "
                            "give both",
                            0),
            0)
      << alone.err;
  const CommandOutcome closed =
      Ask({"plan", file, "--explain", "--picture", "x.svg"});
  EXPECT_EQ(closed.code, 2);
  EXPECT_EQ(closed.err.rfind("troupe: --picture draws the search of "
                             "parallelism: auto, and the job says its "
                             "parallelism",
                             0),
            0)
      << closed.err;
  scheduler_.refusal = absl::InvalidArgumentError("name: too plain");
  EXPECT_EQ(Ask({"plan", file, "--explain"}).err,
            "troupe: " + file + ":1:7: name: too plain\n");
}

TEST_F(PlanTest, RefusesAWrongClusterBeforeItAsksAnyone) {
  const std::string job = File(
      "hardware_job.yaml", "parallelism: {pipeline: 2, data: 2, tensor: 2}\n");
  const std::string cluster = File(
      "cluster.yaml",
      "nodes: [{workers: 3, device: {matmul: [{dtype: f32, m: 8, n: 8, k: 8, "
      "tflops: 1}], memory: {device: {size_gib: 8, bandwidth_gb_s: 50}}}}]\n"
      "links: {intra_node: {latency_us: 5, bandwidth_gb_s: 10}}\n");
  const CommandOutcome few = RunCommand({"plan", job, "--cluster", cluster});
  EXPECT_EQ(few.code, 1);
  EXPECT_EQ(few.err, "troupe: " + cluster +
                         ": nodes: 3 workers on 1 node, and the job wants 8; "
                         "add nodes, or use smaller parallelism sizes\n");
  const std::string wrong = File("wrong_cluster.yaml", "nodes: [{count: 0}]\n");
  EXPECT_EQ(RunCommand({"plan", job, "--cluster", wrong}).err,
            "troupe: " + wrong + ":1:17: nodes[0].count: 0; use 1 to 100000\n");
  EXPECT_EQ(
      RunCommand({"plan", job, "--cluster", cluster, "--workers", "2"}).code,
      2);
}

TEST_F(PlanTest, NeedsTheDaemonsPrograms) {
  // This test's own folder has none, and neither has the PATH.
  const std::string file = File("plan.yaml", "name: demo\n");
  setenv("PATH", "/no/such", 1);
  const CommandOutcome half = RunCommand({"plan", file, "--nvme", "/"});
  EXPECT_EQ(half.code, 2);
  EXPECT_NE(half.err.find("--nvme DIR and --nvme-size BYTES go together"),
            std::string::npos)
      << half.err;
  const CommandOutcome outcome = RunCommand({"plan", file, "--workers", "2"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err.rfind("troupe: cannot find troupe-scheduler", 0), 0)
      << outcome.err;
}

}  // namespace
}  // namespace troupe
