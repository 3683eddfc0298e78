#include "scheduler/planner/check_devices.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// 'g' on a GPU, 'c' on a CPU.
std::vector<WorkerDescription> Workers(const std::string& kinds) {
  std::vector<WorkerDescription> workers(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    workers[i].set_name(absl::StrCat("worker-", i));
    if (kinds[i] == 'g') workers[i].mutable_gpu()->set_uuid("x");
  }
  return workers;
}

TEST(CheckDevices, OneKindIsFine) {
  EXPECT_TRUE(CheckDevices(Workers("c")).ok());
  EXPECT_TRUE(CheckDevices(Workers("cccc")).ok());
  EXPECT_TRUE(CheckDevices(Workers("ggg")).ok());
}

TEST(CheckDevices, TwoKindsAreNamed) {
  EXPECT_EQ(CheckDevices(Workers("gcg")),
            absl::InvalidArgumentError(
                "parallelism.data: 3 ranks would take 2 workers on GPUs "
                "(worker-0, worker-2) and 1 on CPUs (worker-1), and all would "
                "wait for the CPUs in each step; use 2, or stop the workers of "
                "one kind"));
  const absl::Status many = CheckDevices(Workers("gcccccc"));
  EXPECT_NE(
      many.message().find(
          "6 on CPUs (worker-1, worker-2, worker-3, worker-4 and 2 more)"),
      absl::string_view::npos)
      << many;
}

JobSpec Job(int heads) {
  JobSpec job;
  job.mutable_model()->set_hidden_size(1024);
  job.mutable_model()->set_num_attention_heads(heads);
  return job;
}

TEST(CheckHeads, KernelsOfGpusGoSoFar) {
  EXPECT_TRUE(CheckHeads(Job(4), Workers("gg")).ok());
  EXPECT_EQ(CheckHeads(Job(2), Workers("gg")),
            absl::InvalidArgumentError(
                "model.num_attention_heads: heads of 512 columns, and "
                "attention in f32 on a GPU (worker-0) takes up to 256; use "
                "more heads, or workers on CPUs"));
  EXPECT_TRUE(CheckHeads(Job(2), Workers("cc")).ok());
  JobSpec job = Job(16);
  job.mutable_model()->set_head_dim(264);
  EXPECT_EQ(CheckHeads(job, Workers("g")).message().substr(0, 42),
            "model.head_dim: heads of 264 columns, and ");
  EXPECT_TRUE(CheckHeads(JobSpec(), Workers("g")).ok());
}

// Heads of values are as wide as those of keys there.
TEST(CheckHeads, KernelsOfGpusTakeOneWidth) {
  JobSpec job = Job(16);
  job.mutable_model()->set_qk_nope_head_dim(128);
  job.mutable_model()->set_qk_rope_head_dim(64);
  job.mutable_model()->set_v_head_dim(128);
  EXPECT_TRUE(CheckHeads(job, Workers("cc")).ok());
  EXPECT_EQ(CheckHeads(job, Workers("g")),
            absl::InvalidArgumentError(
                "model.v_head_dim: attention on a GPU (worker-0) takes heads "
                "of values as wide as those of keys, not 128 columns beside "
                "192; use workers on CPUs"));
  job.mutable_model()->set_v_head_dim(192);
  EXPECT_TRUE(CheckHeads(job, Workers("g")).ok());
  job.mutable_model()->set_qk_nope_head_dim(256);
  job.mutable_model()->set_v_head_dim(320);
  EXPECT_EQ(CheckHeads(job, Workers("g")).message().substr(0, 51),
            "model.qk_nope_head_dim: heads of 320 columns, and a");
}

// One whose blocks have less shared memory takes narrower heads; how much
// narrower depends on what is computed in.
TEST(CheckHeads, AGpuMaySayLess) {
  std::vector<WorkerDescription> workers = Workers("gg");
  workers[1].mutable_gpu()->set_name("NVIDIA L40");
  workers[1].mutable_gpu()->set_head_dim_max_f32(64);
  workers[1].mutable_gpu()->set_head_dim_max_narrow(128);
  JobSpec job = Job(8);
  EXPECT_EQ(CheckHeads(job, workers),
            absl::InvalidArgumentError(
                "model.num_attention_heads: heads of 128 columns, and "
                "attention in f32 on a GPU (worker-1, NVIDIA L40) takes up to "
                "64; use more heads, or workers on CPUs"));
  for (const char* const narrow : {"bf16", "fp16"}) {
    job.mutable_training()->set_precision(narrow);
    EXPECT_TRUE(CheckHeads(job, workers).ok());
  }
  EXPECT_FALSE(CheckHeads(Job(4), workers).ok());
}

}  // namespace
}  // namespace troupe
