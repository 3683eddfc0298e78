#include "clients/cluster_file/cluster_workers.h"

#include <map>

#include "absl/strings/str_replace.h"
#include "clients/cluster_file/cluster_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/compile/compile.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr char kCluster[] =
    "nodes:\n"
    "- {count: 2, workers: 2, device: gpu}\n"
    "- {workers: 1, device: cpu}\n"
    "devices:\n"
    "  gpu:\n"
    "    matmul: [{dtype: bf16, m: 8, n: 9, k: 10, tflops: 250}]\n"
    "    memory: {device: {size_gib: 80, bandwidth_gb_s: 2000}, "
    "host: {size_gib: 128, bandwidth_gb_s: 25}, "
    "nvme: {size_gib: 1000, bandwidth_gb_s: 3}}\n"
    "    overhead_us: 7\n"
    "  cpu:\n"
    "    kind: cpu\n"
    "    matmul: [{dtype: bf16, m: 8, n: 8, k: 8, tflops: 1}]\n"
    "    attention: [{dtype: bf16, length: 64, head_dim: 8, "
    "forward_tflops: 0.5, backward_tflops: 0.25}]\n"
    "    memory: {device: {size_gib: 0.5, bandwidth_gb_s: 50}}\n"
    "links:\n"
    "  intra_node: {latency_us: 5, bandwidth_gb_s: 230}\n"
    "  inter_node: {latency_us: 15, bandwidth_gb_s: 23}\n";

absl::StatusOr<std::vector<WorkerDescription>> Workers(
    int count, const std::string& precision = "bf16") {
  return ClusterWorkers(
      ParseClusterSpec({.name = "c.yaml", .text = kCluster}).value(),
      {.count = count, .precision = precision});
}

TEST(ClusterWorkers, FillTheNodesInOrder) {
  const std::vector<WorkerDescription> workers = Workers(5).value();
  ASSERT_EQ(workers.size(), 5u);
  EXPECT_EQ(workers[0].name(), "node-0/0");
  EXPECT_EQ(workers[1].name(), "node-0/1");
  EXPECT_EQ(workers[1].host(), "node-0");
  EXPECT_EQ(workers[2].name(), "node-1/0");
  EXPECT_EQ(workers[4].host(), "node-2");
  EXPECT_TRUE(workers[3].has_gpu());
  EXPECT_NE(workers[2].gpu().uuid(), workers[3].gpu().uuid());
  EXPECT_FALSE(workers[4].has_gpu());
  EXPECT_EQ(workers[4].memory_domain(), "node-2");
  EXPECT_EQ(Workers(3)->size(), 3u);
}

TEST(ClusterWorkers, DescribeThemselvesInTheUnitsOfWorkers) {
  const WorkerDescription worker = Workers(1)->at(0);
  const Calibration& rates = worker.calibration();
  ASSERT_EQ(rates.matmul_size(), 2);  // fp16's is bf16's
  EXPECT_EQ(rates.matmul(0).dtype(), BF16);
  EXPECT_EQ(rates.matmul(0).k(), 10);
  EXPECT_EQ(rates.matmul(0).flops_per_second(), 250e12);
  EXPECT_EQ(rates.memory_bytes_per_second(), 2e12);
  EXPECT_EQ(rates.memory_bf16_bytes_per_second(), 2e12);
  EXPECT_EQ(rates.optimizer_bytes_per_second(), 2e12);
  EXPECT_EQ(rates.host_bytes_per_second(), 25e9);
  EXPECT_EQ(rates.nvme_bytes_per_second(), 3e9);
  EXPECT_EQ(rates.instruction_overhead_us(), 7);
  EXPECT_EQ(rates.loopback().bytes_per_second(), 230e9);
  EXPECT_EQ(rates.shared_memory().latency_us(), 5);
  EXPECT_EQ(worker.network().rate().bytes_per_second(), 23e9);
  EXPECT_EQ(worker.network().rate().latency_us(), 15);
  ASSERT_EQ(worker.budgets_size(), 3);
  EXPECT_EQ(worker.budgets(0).tier(), DEVICE);
  EXPECT_EQ(worker.budgets(0).bytes(), int64_t{80} << 30);
  EXPECT_EQ(worker.budgets(2).bytes(), int64_t{1000} << 30);
}

TEST(ClusterWorkers, ShareTheAdaptersOfTheirNode) {
  const std::string text = absl::StrReplaceAll(
      kCluster, {{"workers: 2, device: gpu",
                  "workers: 2, device: gpu, nics: [{bandwidth_gb_s: 12}]"},
                 {"workers: 1, device: cpu",
                  "workers: 1, device: cpu, nics: [{count: 2, "
                  "bandwidth_gb_s: 3}]"},
                 {", bandwidth_gb_s: 23}\n", "}\n"}});
  const auto cluster = ParseClusterSpec({.name = "c.yaml", .text = text});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const std::vector<WorkerDescription> workers =
      ClusterWorkers(*cluster, {.count = 5, .precision = "bf16"}).value();
  EXPECT_EQ(workers[0].nics_size(), 1);
  EXPECT_EQ(workers[0].nics(0).name(), workers[1].nics(0).name());
  EXPECT_EQ(workers[0].nics(0).link().source(), GIVEN);
  EXPECT_EQ(workers[0].network().rate().bytes_per_second(), 12e9);
  EXPECT_EQ(workers[0].network().rate().latency_us(), 15);
  EXPECT_EQ(workers[4].nics_size(), 2);
  EXPECT_EQ(workers[4].network().rate().bytes_per_second(), 6e9);
}

// Files count what causal attention computes, calibrations all of the matrix.
TEST(ClusterWorkers, AttentionIsGivenOrFollowsFromProducts) {
  const std::vector<WorkerDescription> workers = Workers(5).value();
  const auto& given = workers[4].calibration().attention();
  ASSERT_EQ(given.size(), 1);  // of a processor, which has no fp16
  EXPECT_EQ(given[0].forward_flops_per_second(), 1e12);
  EXPECT_EQ(given[0].backward_flops_per_second(), 0.5e12);
  const auto& derived = workers[0].calibration().attention();
  ASSERT_EQ(derived.size(), 2);  // of the dtypes that have products
  EXPECT_EQ(derived[0].dtype(), BF16);
  EXPECT_GT(derived[0].forward_flops_per_second(), 200e12);
  EXPECT_LT(derived[0].backward_flops_per_second(),
            derived[0].forward_flops_per_second());
}

TEST(ClusterWorkers, ComputeInFp16AsTheFileSays) {
  const std::string text = absl::StrReplaceAll(kCluster, {{"bf16", "fp16"}});
  const std::vector<WorkerDescription> workers =
      ClusterWorkers(ParseClusterSpec({.name = "c.yaml", .text = text}).value(),
                     {.count = 5, .precision = "fp16"})
          .value();
  for (const int worker : {0, 4}) {
    const Calibration& rates = workers[worker].calibration();
    EXPECT_EQ(rates.matmul(0).dtype(), F16);
    EXPECT_EQ(rates.attention(0).dtype(), worker == 0 ? BF16 : F16);
  }
}

TEST(ClusterWorkers, KnowTheDatasheetOfTheirDevice) {
  EXPECT_EQ(Workers(1)->front().datasheet_size(), 0);
  const std::string text = absl::StrReplaceAll(
      kCluster, {{"    matmul: [{dtype: bf16",
                  "    datasheet: [{dtype: bf16, tflops: 312}]\n"
                  "    matmul: [{dtype: bf16"}});
  ASSERT_NE(text, kCluster);
  const auto workers =
      ClusterWorkers(ParseClusterSpec({.name = "c.yaml", .text = text}).value(),
                     {.count = 1, .precision = "bf16"});
  ASSERT_TRUE(workers.ok()) << workers.status();
  const WorkerDescription& worker = workers->front();
  ASSERT_EQ(worker.datasheet_size(), 2);  // fp16's is bf16's
  EXPECT_EQ(worker.datasheet(0).dtype(), BF16);
  EXPECT_EQ(worker.datasheet(1).dtype(), F16);
  for (const DatasheetRate& rate : worker.datasheet()) {
    EXPECT_EQ(rate.flops_per_second(), 312e12);
  }
}

// Tensor cores multiply bf16 and fp16 at one rate, so that a file needs one of
// them; processors multiply fp16 in f32.
TEST(ClusterWorkers, OneNarrowTypeTellsOfTheOther) {
  for (const char* const given : {"bf16", "fp16"}) {
    const std::string text = absl::StrReplaceAll(kCluster, {{"bf16", given}});
    const ClusterSpec cluster =
        ParseClusterSpec({.name = "c.yaml", .text = text}).value();
    for (const char* const precision : {"bf16", "fp16"}) {
      const auto workers =
          ClusterWorkers(cluster, {.count = 4, .precision = precision});
      ASSERT_TRUE(workers.ok()) << workers.status();
      const Calibration& rates = workers->front().calibration();
      std::map<ElementType, double> products;
      for (const MatmulRate& rate : rates.matmul()) {
        products[rate.dtype()] = rate.flops_per_second();
      }
      EXPECT_EQ(products[BF16], 250e12);
      EXPECT_EQ(products[F16], 250e12);
      std::map<ElementType, double> attention;
      for (const AttentionRate& rate : rates.attention()) {
        attention[rate.dtype()] = rate.forward_flops_per_second();
      }
      EXPECT_GT(attention[F16], 0);
      EXPECT_EQ(attention[BF16], attention[F16]);
    }
  }
  EXPECT_THAT(std::string(Workers(5, "fp16").status().message()),
              HasSubstr("nodes[1].device.matmul: no product in fp16"));
  const std::string in_f32 =
      absl::StrReplaceAll(kCluster, {{"bf16, m: 8, n: 8", "f32, m: 8, n: 8"}});
  EXPECT_TRUE(ClusterWorkers(
                  ParseClusterSpec({.name = "c.yaml", .text = in_f32}).value(),
                  {.count = 5, .precision = "fp16"})
                  .ok());
}

TEST(ClusterWorkers, SayWhenThereAreTooFew) {
  EXPECT_EQ(Workers(6).status(),
            absl::FailedPreconditionError(
                "nodes: 5 workers on 3 nodes, and the job wants 6; add nodes, "
                "or use smaller parallelism sizes"));
}

TEST(ClusterWorkers, NeedARateForTheJobsPrecision) {
  EXPECT_EQ(Workers(1, "f32").status(),
            absl::InvalidArgumentError(
                "nodes[0].device.matmul: no product in f32, in which the job "
                "computes; add one, or set training.precision"));
}

// GPT-2 1.5B as 8 stages by 4 replicas on an example.
Plan PlanOn(const ClusterSpec& cluster, const std::string& precision = "bf16") {
  CompileRequest request;
  JobSpec& job = *request.mutable_job();
  job.set_name("hardware");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("gpt2");
  model.set_num_hidden_layers(48);
  model.set_hidden_size(1600);
  model.set_num_attention_heads(25);
  model.set_vocab_size(50257);
  model.set_max_position_embeddings(1024);
  job.mutable_data()->set_tokens("/a.tokens");
  job.mutable_training()->set_steps(10);
  job.mutable_training()->set_precision(precision);
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_training()->set_global_batch_size(256);
  job.mutable_optimizer()->set_lr(1e-4);
  job.mutable_parallelism()->set_pipeline(8);
  job.mutable_parallelism()->set_data(4);
  const auto workers =
      ClusterWorkers(cluster, {.count = 32, .precision = precision});
  EXPECT_TRUE(workers.ok()) << workers.status();
  for (const WorkerDescription& worker : *workers) {
    *request.add_workers() = worker;
  }
  const CompileResponse response = Compile(request, {});
  EXPECT_EQ(response.error(), "");
  return response.plan();
}

TEST(ClusterWorkers, ArePlannedForLikeAnyOther) {
  ClusterSpec a100 = LoadClusterSpec("clients/examples/a100.yaml").value();
  const ClusterSpec h100 =
      LoadClusterSpec("clients/examples/h100.yaml").value();
  const Plan plan = PlanOn(a100);
  for (const Group& group : plan.groups()) {
    ASSERT_EQ(group.carriers_size(), 1);
    EXPECT_EQ(group.carriers(0).backend(), "nccl");
  }
  const Prediction& prediction = plan.prediction();
  EXPECT_GT(prediction.model_flops_utilization(), 0.3);
  EXPECT_LT(prediction.model_flops_utilization(), 0.8);
  // Of 16 micro-batches in 8 stages, (P - 1) / (M + P - 1), and a bit more:
  // stages of whole blocks are not equally long.
  EXPECT_GT(prediction.bubble_of_total(), 7.0 / 23 - 0.05);
  EXPECT_LT(prediction.bubble_of_total(), 7.0 / 23 + 0.15);
  EXPECT_LT(PlanOn(h100).prediction().step_seconds(),
            0.6 * prediction.step_seconds());
  EXPECT_NEAR(PlanOn(a100, "fp16").prediction().step_seconds(),
              prediction.step_seconds(), 0.01 * prediction.step_seconds());
  for (const RankPrediction& rank : prediction.ranks()) {
    EXPECT_GT(rank.peak_bytes(), int64_t{1} << 30);
    EXPECT_EQ(rank.budgets(0).bytes(), int64_t{80} << 30);
  }
  // Stages lie on nodes of their own, so what moves between nodes waits for
  // the slower network.
  a100.mutable_links()->mutable_inter_node()->set_bandwidth_gb_s(0.5);
  EXPECT_GT(PlanOn(a100).prediction().step_seconds(),
            1.1 * prediction.step_seconds());
}

}  // namespace
}  // namespace troupe
