// A job that stops and resumes from a checkpoint trains the same model as one
// that never stopped, also where the second half runs on other ranks.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/tensor_reader.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

JobSpec CheckpointedJob(const std::string& name) {
  JobSpec job = SmallJob();
  job.mutable_training()->set_dropout(0.1);
  job.mutable_training()->set_micro_batch_size(2);
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_checkpoint()->set_every(8);
  job.mutable_checkpoint()->set_keep(2);
  return job;
}

void ExpectContinues(const TrainingRun& resumed, const TrainingRun& whole,
                     double relative_error) {
  ASSERT_TRUE(resumed.status().ok()) << resumed.status();
  ASSERT_EQ(resumed.steps[0].size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    const StepRecord& got = resumed.steps[0][i];
    const StepRecord& want = whole.steps[0][i + 8];
    EXPECT_EQ(got.step(), want.step());
    EXPECT_EQ(got.samples_consumed(), want.samples_consumed());
    EXPECT_LE(std::abs(got.loss() - want.loss()), relative_error * want.loss())
        << "step " << got.step();
  }
}

TEST(Resume, ContinuesAsIfNothingHadHappened) {
  JobSpec job = CheckpointedJob("resume");
  job.mutable_parallelism()->set_data(2);
  const TrainingRun whole = Train(job, {.ranks = 2});
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  // Of steps 8, 16 and 20 the newest two are kept.
  ASSERT_EQ(whole.checkpoints.size(), 3u);
  const auto kept = ListCheckpoints(job.checkpoint().directory());
  ASSERT_TRUE(kept.ok());
  ASSERT_EQ(kept->size(), 2u);
  EXPECT_EQ((*kept)[0].step, 16);
  EXPECT_EQ((*kept)[1].step, 20);
  EXPECT_TRUE(CheckCheckpoint((*kept)[1].path, CheckDepth::kChecksums).ok());

  // Keep all this time, so that step 8 is there.
  job.mutable_checkpoint()->set_keep(0);
  job.mutable_checkpoint()->set_overwrite(true);
  ASSERT_TRUE(Train(job, {.ranks = 2}).status().ok());
  const std::string step_8 = CheckpointPath(job.checkpoint().directory(), 8);
  job.clear_checkpoint();
  ExpectContinues(Train(job, {.ranks = 2, .resume = step_8}), whole, 1e-6);

  // Another plan: other ranks, other micro-batches.
  job.mutable_parallelism()->set_data(1);
  job.mutable_training()->set_micro_batch_size(4);
  ExpectContinues(Train(job, {.ranks = 1, .resume = step_8}), whole, 1e-5);
}

// Weights and moments of the two checkpoints, bit for bit.
void ExpectSameState(const std::string& a, const std::string& b) {
  const auto first = TensorReader::Open(a);
  const auto second = TensorReader::Open(b);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  const Manifest& manifest = (*first)->manifest();
  EXPECT_GT(manifest.tensors.size(), 20u);
  for (const ManifestTensor& tensor : manifest.tensors) {
    std::vector<float> want(ElementCount(tensor.shape));
    std::vector<float> got(want.size());
    const FlatRange all = {.begin = 0,
                           .count = static_cast<int64_t>(want.size())};
    const auto read = [&](const TensorReader& reader, float* to) {
      return reader.ReadRange(tensor.name, StoredDType::kF32, all, to);
    };
    ASSERT_TRUE(read(**first, want.data()).ok()) << tensor.name;
    ASSERT_TRUE(read(**second, got.data()).ok()) << tensor.name;
    EXPECT_EQ(std::memcmp(want.data(), got.data(), want.size() * sizeof(float)),
              0)
        << tensor.name;
  }
}

class ResumeExactly : public testing::TestWithParam<std::string> {};

TEST_P(ResumeExactly, TwoHalvesAreTheWholeBitForBit) {
  JobSpec job = CheckpointedJob("resume_whole_" + GetParam());
  job.mutable_training()->set_precision(GetParam());
  job.mutable_parallelism()->set_data(2);
  const TrainingRun whole = Train(job, {.ranks = 2});
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  const std::string whole_directory = job.checkpoint().directory();

  *job.mutable_checkpoint() =
      CheckpointedJob("resume_half_" + GetParam()).checkpoint();
  const std::string directory = job.checkpoint().directory();
  job.mutable_training()->set_stop_after(10);
  TrainingRun halves = Train(job, {.ranks = 2});
  ASSERT_TRUE(halves.status().ok()) << halves.status();
  ASSERT_EQ(halves.steps[0].size(), 10u);
  EXPECT_EQ(halves.checkpoints.back().step(), 10);
  job.mutable_training()->clear_stop_after();

  // The other half on four ranks, without a trace on disk.
  JobSpec wider = job;
  wider.mutable_parallelism()->set_data(4);
  wider.clear_checkpoint();
  const TrainingRun on_four =
      Train(wider, {.ranks = 4, .resume = CheckpointPath(directory, 10)});
  ASSERT_TRUE(on_four.status().ok()) << on_four.status();

  const TrainingRun rest = Train(job, {.ranks = 2, .resume = "latest"});
  ASSERT_TRUE(rest.status().ok()) << rest.status();
  ASSERT_EQ(rest.steps[0].size(), 10u);
  for (size_t i = 0; i < 20; ++i) {
    const StepRecord& want = whole.steps[0][i];
    const StepRecord& got = i < 10 ? halves.steps[0][i] : rest.steps[0][i - 10];
    EXPECT_EQ(got.step(), want.step());
    EXPECT_EQ(got.loss(), want.loss()) << "step " << want.step();
    EXPECT_EQ(got.grad_norm(), want.grad_norm()) << "step " << want.step();
    EXPECT_EQ(got.learning_rate(), want.learning_rate());
    if (i < 10 || GetParam() != "f32") continue;
    EXPECT_NEAR(on_four.steps[0][i - 10].loss(), want.loss(),
                1e-5 * want.loss())
        << "step " << want.step();
  }
  ExpectSameState(CheckpointPath(whole_directory, 20),
                  CheckpointPath(directory, 20));
}

INSTANTIATE_TEST_SUITE_P(Precisions, ResumeExactly,
                         testing::Values("f32", "bf16"),
                         [](const auto& info) { return info.param; });

TEST(Resume, AnotherModelIsRefusedByName) {
  JobSpec job = CheckpointedJob("resume_other");
  job.mutable_training()->set_steps(1);
  job.mutable_lr_scheduler()->set_warmup_steps(0);
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string path = CheckpointPath(job.checkpoint().directory(), 1);
  job.mutable_training()->set_steps(3);
  job.mutable_model()->set_hidden_size(48);
  const TrainingRun run = Train(job, {.resume = path});
  EXPECT_EQ(run.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(run.status().message().find("transformer.wte.weight is [61, 24]"),
            absl::string_view::npos)
      << run.status();
  EXPECT_EQ(run.bytes_left, 0u);
}

TEST(Resume, MissingMomentsAreNamed) {
  JobSpec job = CheckpointedJob("resume_moments");
  job.mutable_training()->set_steps(1);
  job.mutable_lr_scheduler()->set_warmup_steps(0);
  job.mutable_optimizer()->set_name("sgd");
  ASSERT_TRUE(Train(job, {}).status().ok());
  const std::string path = CheckpointPath(job.checkpoint().directory(), 1);
  job.mutable_training()->set_steps(3);
  job.mutable_optimizer()->set_name("adamw");
  const TrainingRun run = Train(job, {.resume = path});
  EXPECT_NE(run.status().message().find("optimizer.exp_avg."),
            absl::string_view::npos)
      << run.status();
}

}  // namespace
}  // namespace troupe
