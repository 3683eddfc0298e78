#include "scheduler/simulate/gpu_scratch.h"

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/base/gpu_limits.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

std::map<std::string, int64_t> ItemsOf(const JobSpec& job) {
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  workers[0].clear_budgets();  // so that anything fits
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::map<std::string, int64_t> items;
  if (!plan.ok()) return items;
  for (const MemoryItem& item : GpuScratchItems(*plan)) {
    EXPECT_EQ(item.tier(), DEVICE);
    items[item.item()] += item.bytes();
  }
  return items;
}

// A wide model, cheap to plan: nothing is allocated.
JobSpec WideJob(const std::string& precision) {
  JobSpec job = ExampleJob({.micro_batch_size = 8});
  job.mutable_model()->set_hidden_size(1600);
  job.mutable_model()->set_num_attention_heads(25);
  job.mutable_model()->set_max_position_embeddings(1024);
  job.mutable_training()->set_sequence_length(1024);
  job.mutable_training()->set_precision(precision);
  return job;
}

TEST(GpuScratchItems, AreAWorkspaceAndTheMostThatAnOpTakes) {
  std::map<std::string, int64_t> items = ItemsOf(ExampleJob({}));
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items["product_workspace"], kGpuProductWorkspaceBytes);
  EXPECT_EQ(items["kernel_scratch"], 32 * kMiB);
  // 128 parts of 6,400 columns are 3.1 MiB: still the smallest step.
  EXPECT_EQ(ItemsOf(WideJob("f32"))["kernel_scratch"], 32 * kMiB);
  // 8 x 1,024 rows of 6,400 columns in f32 are 200 MiB.
  for (const char* const narrow : {"bf16", "fp16"}) {
    JobSpec job = WideJob(narrow);
    job.mutable_training()->set_dropout(0.1);
    EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 224 * kMiB);
  }
}

TEST(GpuScratchItems, AModelWithoutBiasesNeedsNoSumsOfProducts) {
  JobSpec job = WideJob("bf16");
  job.mutable_model()->set_architecture("llama");
  job.mutable_model()->set_intermediate_size(6400);
  job.mutable_training()->set_dropout(0.1);
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 32 * kMiB);
}

// 64 x 1,024 rows of 50,264 logits are more than 2^31 elements, so the gradient
// of their weights is a sum of parts. Kept narrow, it takes 50,264 x 1,600
// numbers of f32 meanwhile: 307 MiB.
TEST(GpuScratchItems, NarrowGradientsOfALargeVocabularyAreSummedInF32) {
  JobSpec job = WideJob("bf16");
  job.mutable_model()->set_architecture("llama");
  job.mutable_model()->set_intermediate_size(6400);
  job.mutable_model()->set_vocab_size(50264);
  job.mutable_training()->set_dropout(0.1);
  job.mutable_training()->set_micro_batch_size(64);
  job.mutable_training()->set_global_batch_size(64);
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 32 * kMiB);
  job.mutable_training()->set_gradient_precision("parameters");
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 320 * kMiB);
  // Half of the rows go into one product.
  job.mutable_training()->set_micro_batch_size(32);
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 32 * kMiB);
}

// A table of 262,144 tokens by 12,288 has more than 2^31 elements: the gradient
// of 1,024 rows that it multiplied is a sum of parts, of 48 MiB.
TEST(GpuScratchItems, AWeightTooLargeForOneProduct) {
  JobSpec job = WideJob("bf16");
  job.mutable_model()->set_architecture("llama");
  job.mutable_model()->set_hidden_size(12288);
  job.mutable_model()->set_num_attention_heads(96);
  job.mutable_model()->set_intermediate_size(6400);
  job.mutable_model()->set_vocab_size(262144);
  job.mutable_training()->set_dropout(0.1);
  job.mutable_training()->set_micro_batch_size(1);
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 64 * kMiB);
  job.mutable_model()->set_vocab_size(131072);
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 32 * kMiB);
}

// cuDNN's, which keeps the gradients of scores: 8 x 25 heads of 1,024 x 1,024
// in two bytes are 400 MiB, a number for each row one more; of 32 samples 16 fit
// in a call.
TEST(GpuScratchItems, AttentionWithoutDropoutKeepsGradientsOfScores) {
  JobSpec job = WideJob("bf16");
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 416 * kMiB);
  job.mutable_training()->set_micro_batch_size(32);
  job.mutable_training()->set_global_batch_size(32);
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 832 * kMiB);
  job.mutable_training()->set_micro_batch_size(4);
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 224 * kMiB);
  job.mutable_training()->set_precision("f32");
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 32 * kMiB);
  // 64 times as many rows: 512 Ki of them, 10 MiB as they are sorted, and two
  // sums of 1,600 columns for each 64, 100 MiB.
  job.mutable_training()->set_micro_batch_size(512);
  job.mutable_training()->set_global_batch_size(512);
  EXPECT_EQ(ItemsOf(job)["kernel_scratch"], 128 * kMiB);
}

}  // namespace
}  // namespace troupe
