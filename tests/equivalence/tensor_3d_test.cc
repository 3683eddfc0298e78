// The promise, for products that are cut in three dimensions: eight ranks, two
// along each axis, train the model that a single rank trains.
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/in_pieces.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);

JobSpec Job(const std::string& architecture, bool tied, double dropout) {
  return WithFewSteps(TensorJob({.architecture = architecture,
                                 .tied = tied,
                                 .dropout = dropout,
                                 .micro_batch = 4}));
}

// Of eight ranks.
JobCut Cube(JobCut cut) {
  cut.tensor = 8;
  cut.tensor_method = "3d";
  return cut;
}

void ExpectTheSameModel(const JobSpec& job, const JobCut& cut) {
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  EXPECT_LT(reference.steps[0].back().loss(),
            reference.steps[0][0].loss() - 0.05);
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}), reference,
                     kTolerance);
}

// Half of them tied, and with dropout.
class Tensor3D : public testing::TestWithParam<std::tuple<std::string, bool>> {
};

TEST_P(Tensor3D, TrainsTheSameModel) {
  const auto& [architecture, half] = GetParam();
  ExpectTheSameModel(Job(architecture, half, half ? 0.1 : 0), Cube({}));
}

INSTANTIATE_TEST_SUITE_P(
    Architectures, Tensor3D,
    testing::Values(std::tuple("gpt2", true), std::tuple("gpt2", false),
                    std::tuple("gpt_neox", false), std::tuple("llama", true),
                    std::tuple("mistral", false), std::tuple("qwen2", true),
                    std::tuple("qwen3", false)),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param),
                          std::get<1>(info.param) ? "_dropout" : "");
    });

// With each of the others.
class Tensor3DInAnyPlan : public testing::TestWithParam<JobCut> {};

TEST_P(Tensor3DInAnyPlan, TrainsTheSameModel) {
  JobSpec job = Job("gpt2", /*tied=*/true, 0.1);
  job.mutable_training()->set_global_batch_size(16);
  ExpectTheSameModel(job, Cube(GetParam()));
}

std::vector<JobCut> Cuts() {
  std::vector<JobCut> cuts = {
      {.data = 2},
      {.data = 2, .zero = 3},
      {.zero = 3, .reshard = false},
      {.data = 2, .zero = 3, .context = 2},
      {.context = 2, .context_method = "ring"},
  };
  for (const char* const schedule :
       {"gpipe", "1f1b", "interleaved_1f1b", "chimera", "zb_h1", "zb_v"}) {
    cuts.push_back({.schedule = schedule, .pipeline = 2});
  }
  return cuts;
}

INSTANTIATE_TEST_SUITE_P(
    Others, Tensor3DInAnyPlan, testing::ValuesIn(Cuts()),
    [](const testing::TestParamInfo<JobCut>& info) {
      const JobCut& cut = info.param;
      return absl::StrCat(
          "with", cut.data > 1 ? "_data" : "",
          cut.zero > 0 ? absl::StrCat("_zero", cut.zero) : "",
          cut.reshard ? "" : "_kept",
          cut.context > 1 ? absl::StrCat("_", cut.context_method) : "",
          cut.pipeline > 1 ? absl::StrCat("_", cut.schedule) : "");
    });

TEST(Tensor3DRecompute, IsBitForBitTheSameTraining) {
  JobSpec job = CutJob(Job("gpt2", /*tied=*/true, 0.1), Cube({}));
  const TrainingRun reference = Train(job, {.ranks = 8});
  for (const char* const mode : {"selective", "full"}) {
    job.mutable_memory()->mutable_recompute()->set_mode(mode);
    ExpectSameTraining(Train(job, {.ranks = 8}), reference, 0.0);
  }
}

TEST(Tensor3DResume, AnyCutContinuesWhatAnotherBegan) {
  JobSpec job = Job("llama", /*tied=*/false, 0.1);
  job.mutable_training()->set_validate_every(0);
  const TrainingRun& whole = OneRank(job);
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/tensor_3d_pieces");
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  const std::vector<JobCut> cuts = {
      {.data = 2, .zero = 2},
      Cube({}),
      {.tensor = 2, .sequence = true, .pipeline = 2},
      Cube({.schedule = "zb_v", .pipeline = 2})};
  ASSERT_NO_FATAL_FAILURE(ExpectSameInPieces(job, cuts, whole, kTolerance));
}

}  // namespace
}  // namespace troupe
