// Jobs from the command line to their checkpoints, with real daemons.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class JobsTest : public ClusterTestBase {};

TEST_F(JobsTest, TrainsAndTellsAllAboutIt) {
  Up(2);
  const Outcome outcome =
      Troupe(SubmitCommand({"checkpoint.directory=" + dir() + "/checkpoints",
                            "training.validate_every=2", "training.steps=10"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Outcome watched = Watch(1);
  EXPECT_EQ(watched.code, 0) << watched.err;
  EXPECT_NE(watched.out.find("plan: pipeline 1 x data 2, 4 micro-batches"),
            std::string::npos)
      << watched.out;
  EXPECT_NE(watched.out.find("\nstep 10/10  loss "), std::string::npos)
      << watched.out;
  EXPECT_NE(watched.out.find("job 1 (tiny) SUCCEEDED: 10 steps"),
            std::string::npos)
      << watched.out;

  const json job = Describe(1);
  EXPECT_EQ(job["state"], "SUCCEEDED");
  EXPECT_FALSE(job["plan"]["fingerprint"].get<std::string>().empty());
  EXPECT_GT(job["plan"]["prediction"]["step_seconds"], 0);
  ASSERT_EQ(job["steps"].size(), 10);
  for (int i = 0; i < 10; ++i) {
    const json& step = job["steps"][i];
    EXPECT_EQ(step["step"], i + 1);
    EXPECT_EQ(step["validation_loss"].is_number(), i % 2 == 1) << i;
    for (const char* key :
         {"loss", "grad_norm", "learning_rate", "tokens_per_second", "mfu",
          "step_seconds", "memory_bytes"}) {
      EXPECT_GT(step[key].get<double>(), 0) << key << " of step " << i + 1;
    }
  }
  EXPECT_LT(job["steps"][9]["loss"], job["steps"][0]["loss"]);
  ASSERT_EQ(job["checkpoints"].size(), 1);
  EXPECT_TRUE(fs::exists(job["checkpoints"][0]["path"].get<std::string>()));
}

TEST_F(JobsTest, AFinishedJobCanBeUsed) {
  Up(2);
  const int job = Submit(
      {"checkpoint.directory=" + dir() + "/checkpoints", "training.steps=10"});
  ASSERT_EQ(Watch(job).code, 0);
  const std::vector<std::string> generate = {
      "generate",         "tiny", "--prompt",      "line",
      "--max-new-tokens", "8",    "--temperature", "0"};
  const Outcome text = Troupe(generate);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out.size(), 4 + 8 + 1) << text.out;
  EXPECT_EQ(Troupe(generate).out, text.out) << "greedy is the same each time";
  const std::string checkpoint = Describe(job)["checkpoints"][0]["path"];
  const Outcome from_checkpoint =
      Troupe({"generate", "--checkpoint", checkpoint, "--prompt", "line",
              "--max-new-tokens", "8", "--temperature", "0"});
  EXPECT_EQ(from_checkpoint.out, text.out) << from_checkpoint.err;

  const Outcome trace = Troupe({"trace", "latest"});
  EXPECT_EQ(trace.code, 0) << trace.err;
  EXPECT_NE(trace.out.find("measured, step 10"), std::string::npos);
  EXPECT_NE(trace.out.find("rank 1  compute"), std::string::npos);
  EXPECT_NE(trace.out.find("predicted"), std::string::npos);
  EXPECT_NE(Troupe({"logs", "latest"}).out.find("checkpoint of step 10"),
            std::string::npos);

  // It goes on where it stopped.
  const int more = Submit({"checkpoint.directory=" + dir() + "/checkpoints",
                           "checkpoint.resume=latest", "training.steps=12"});
  ASSERT_EQ(Watch(more).code, 0);
  const json steps = Describe(more)["steps"];
  ASSERT_EQ(steps.size(), 2);
  EXPECT_EQ(steps[0]["step"], 11);
}

// Troupe's main promise, over real daemons and Gloo.
TEST_F(JobsTest, EveryWayOfCuttingAJobTrainsTheSameModel) {
  Up(4);
  for (const char* dropout : {"training.dropout=0", "training.dropout=0.1"}) {
    const auto losses = [&](const char* data, const char* micro_batch) {
      return Losses({dropout, data, micro_batch, "training.steps=20"});
    };
    const std::vector<double> one =
        losses("parallelism.data=1", "training.micro_batch_size=8");
    ASSERT_EQ(one.size(), 20);
    for (const auto& [data, micro_batch] :
         std::vector<std::pair<const char*, const char*>>{
             {"parallelism.data=1", "training.micro_batch_size=2"},
             {"parallelism.data=2", "training.micro_batch_size=1"},
             {"parallelism.data=4", "training.micro_batch_size=2"}}) {
      const std::vector<double> other = losses(data, micro_batch);
      ASSERT_EQ(other.size(), 20);
      for (int i = 0; i < 20; ++i) {
        EXPECT_LE(std::abs(other[i] - one[i]), 1e-5 * one[i])
            << data << " " << micro_batch << " " << dropout << " step "
            << i + 1;
      }
    }
  }
}

TEST_F(JobsTest, RefusalsSayWhereAndWhatToDo) {
  Up(2, {"--device-memory", "64MiB"});
  const Outcome divides =
      Troupe(SubmitCommand({"training.micro_batch_size=3"}));
  EXPECT_EQ(divides.code, 1);
  EXPECT_EQ(divides.err.rfind("troupe: ", 0), 0) << divides.err;
  EXPECT_NE(divides.err.find("batch_size"), std::string::npos) << divides.err;

  const Outcome too_big = Troupe(SubmitCommand({"model.hidden_size=2048"}));
  EXPECT_EQ(too_big.code, 1);
  for (const char* part : {"parameters", "64.0 MiB"}) {
    EXPECT_NE(too_big.err.find(part), std::string::npos) << too_big.err;
  }
  const Outcome no_job = Troupe({"describe", "99"});
  EXPECT_EQ(no_job.code, 1);
  EXPECT_NE(no_job.err.find("99"), std::string::npos);
}

TEST_F(JobsTest, PlansWithoutADaemon) {
  const Outcome text = RunProgram(
      {kTroupe, "plan", dir() + "/tiny.yaml", "--workers", "2", "--threads",
       kThreads, "--programs", "--gantt", dir() + "/plan.svg"});
  ASSERT_EQ(text.code, 0) << text.err;
  for (const char* part : {"pipeline 1 x data 2", "optimizer_moments",
                           "limited by", "F u1 m0", "ranks 0-1"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << text.out;
  }
  EXPECT_GT(fs::file_size(dir() + "/plan.svg"), 1000);
  const Outcome as_json =
      RunProgram({kTroupe, "plan", dir() + "/tiny.yaml", "--workers", "2",
                  "--threads", kThreads, "--json"});
  const json plan = json::parse(as_json.out);
  EXPECT_EQ(plan["derived"]["data_parallel_size"], 2);
  EXPECT_GT(plan["prediction"]["ranks"][0]["memory"].size(), 3);

  const Outcome refused =
      RunProgram({kTroupe, "plan", dir() + "/tiny.yaml", "--workers", "2",
                  "--threads", kThreads, "--device-memory", "64MiB", "--set",
                  "model.hidden_size=4096"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("optimizer_moments"), std::string::npos)
      << refused.err;
}

// Neither a daemon nor a calibration: a cluster file says what there is.
TEST_F(JobsTest, PlansForHardwareThatIsNotThere) {
  const std::string cluster = dir() + "/cluster.yaml";
  const auto describe =
      [&](const std::string& inter_node) {
        std::ofstream(cluster)
            << "nodes: [{count: 2, workers: 1, device: small}]\n"
               "devices:\n"
               "  small:\n"
               "    matmul: [{dtype: f32, m: 512, n: 512, k: 512, tflops: 1}]\n"
               "    memory: {device: {size_gib: 8, bandwidth_gb_s: 100}}\n"
               "links: {inter_node: "
            << inter_node << "}\n";
      };
  const std::vector<std::string> command = {kTroupe,
                                            "plan",
                                            dir() + "/tiny.yaml",
                                            "--cluster",
                                            cluster,
                                            "--json",
                                            "--set",
                                            "parallelism.data=1",
                                            "--set",
                                            "parallelism.pipeline=2"};
  describe("{latency_us: 5, bandwidth_gb_s: 10}");
  const Outcome fast = RunProgram(command);
  ASSERT_EQ(fast.code, 0) << fast.err;
  const json plan = json::parse(fast.out);
  const json& prediction = plan["prediction"];
  EXPECT_GT(prediction["step_seconds"], 0);
  EXPECT_GT(prediction["bubble_of_total"], 0);
  EXPECT_GT(prediction["bubble_of_ideal"], prediction["bubble_of_total"]);
  ASSERT_EQ(prediction["ranks"].size(), 2);
  for (const json& rank : prediction["ranks"]) {
    EXPECT_GT(rank["peak_bytes"], 0);
    EXPECT_GT(rank["exposed_communication_seconds"], 0);
  }
  describe("{latency_us: 5000, bandwidth_gb_s: 0.01}");
  const Outcome slow = RunProgram(command);
  ASSERT_EQ(slow.code, 0) << slow.err;
  EXPECT_GT(json::parse(slow.out)["prediction"]["step_seconds"],
            prediction["step_seconds"]);
}

}  // namespace
}  // namespace troupe
