// A cluster file with a GPU in front of one that is four times slower.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "clients/cluster_file/cluster_file.h"
#include "clients/cluster_file/cluster_workers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/compile/compile.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr char kCluster[] =
    "nodes: [{workers: 1, device: fast}, {workers: 1, device: slow}]\n"
    "devices:\n"
    "  fast:\n"
    "    matmul: [{dtype: bf16, m: 4096, n: 4096, k: 4096, tflops: 200}]\n"
    "    memory: {device: {size_gib: FAST_GIB, bandwidth_gb_s: 1600}}\n"
    "  slow:\n"
    "    matmul: [{dtype: bf16, m: 4096, n: 4096, k: 4096, tflops: 50}]\n"
    "    memory: {device: {size_gib: 40, bandwidth_gb_s: 400}}\n"
    "links: {inter_node: {latency_us: 20, bandwidth_gb_s: 22.5}}\n";

CompileRequest Request(const std::string& fast_gib) {
  CompileRequest request;
  JobSpec& job = *request.mutable_job();
  job.set_name("two");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("gpt2");
  model.set_num_hidden_layers(12);
  model.set_hidden_size(768);
  model.set_num_attention_heads(12);
  model.set_vocab_size(50257);
  model.set_max_position_embeddings(1024);
  job.mutable_data()->set_tokens("x.tokens");
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(10);
  training.set_global_batch_size(32);
  training.set_micro_batch_size(4);
  training.set_precision("bf16");
  job.mutable_optimizer()->set_lr(1e-3);
  job.mutable_parallelism()->set_pipeline(2);
  const ClusterSpec cluster =
      ParseClusterSpec(
          {.name = "two.yaml",
           .text = absl::StrReplaceAll(kCluster, {{"FAST_GIB", fast_gib}})})
          .value();
  const auto workers =
      ClusterWorkers(cluster, {.count = 2, .precision = "bf16"});
  for (const WorkerDescription& worker : *workers) {
    *request.add_workers() = worker;
  }
  return request;
}

double StepWith(CompileRequest request, int first) {
  ParallelismSpec& parallelism = *request.mutable_job()->mutable_parallelism();
  parallelism.add_stages(first);
  parallelism.add_stages(14 - first);
  const CompileResponse response = Compile(request, {});
  EXPECT_EQ(response.error(), "") << first;
  return response.plan().prediction().step_seconds();
}

// What was planned for equal devices, and all that there is by hand.
TEST(UnequalDevices, HandMadeStagesAreNotFaster) {
  const CompileRequest request = Request("40");
  const CompileResponse response = Compile(request, {});
  ASSERT_EQ(response.error(), "");
  const double step = response.plan().prediction().step_seconds();
  double best = step;
  for (int first = 1; first < 14; ++first) {
    best = std::min(best, StepWith(request, first));
  }
  EXPECT_LE(step, 1.001 * best);
  // Equally many layers, more or less, as the head counts as some.
  EXPECT_LT(step, 0.65 * StepWith(request, 9));
}

// The fast one has the layers that it has room for.
TEST(UnequalDevices, LayersGoWhereMemoryIs) {
  const CompileResponse large = Compile(Request("40"), {});
  const CompileResponse small = Compile(Request("4"), {});
  ASSERT_EQ(small.error(), "");
  const Plan& plan = small.plan();
  EXPECT_LT(plan.stages(0).unit_count(), large.plan().stages(0).unit_count());
  EXPECT_GT(plan.stages(0).unit_count(), 1);
  EXPECT_LE(plan.prediction().ranks(0).peak_bytes(), int64_t{4} << 30);
  EXPECT_THAT(Compile(Request("0.2"), {}).error(),
              HasSubstr("more than the budget"));
}

}  // namespace
}  // namespace troupe
