// The promise, for products that are cut in three dimensions: eight ranks, two
// along each axis, train the model that a single rank trains.
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/equivalence/blocks_of_ranks.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

// Of eight ranks.
JobCut Cube(JobCut cut) {
  cut.tensor = 8;
  cut.tensor_method = "3d";
  return cut;
}

// Half of them tied, and with dropout.
class Tensor3D : public testing::TestWithParam<std::tuple<std::string, bool>> {
};

TEST_P(Tensor3D, TrainsTheSameModel) {
  const auto& [architecture, half] = GetParam();
  ExpectTrainsTheSameModel(BlocksJob(architecture, half, half ? 0.1 : 0),
                           Cube({}));
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
  JobSpec job = BlocksJob("gpt2", /*tied=*/true, 0.1);
  job.mutable_training()->set_global_batch_size(16);
  ExpectTrainsTheSameModel(job, Cube(GetParam()));
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
  ExpectSameRecomputed(Cube({}));
}

TEST(Tensor3DResume, AnyCutContinuesWhatAnotherBegan) {
  const std::vector<JobCut> cuts = {
      {.data = 2, .zero = 2},
      Cube({}),
      {.tensor = 2, .sequence = true, .pipeline = 2},
      Cube({.schedule = "zb_v", .pipeline = 2})};
  ExpectResumedByOthers(cuts, "tensor_3d_pieces");
}

}  // namespace
}  // namespace troupe
