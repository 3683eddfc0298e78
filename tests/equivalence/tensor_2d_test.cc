// The promise, for products of blocks: ranks in a square, or in layers of
// squares, train the model that a single rank trains.
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "tests/equivalence/blocks_of_ranks.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

// Of four ranks, or eight.
JobCut Square(JobCut cut) {
  cut.tensor = 4;
  cut.tensor_method = "2d";
  return cut;
}
JobCut Layers(JobCut cut) {
  cut.tensor = 8;
  cut.tensor_method = "2.5d";
  return cut;
}

// Half of them tied, and with dropout.
class TensorInBlocks
    : public testing::TestWithParam<
          std::tuple<std::tuple<std::string, bool>, const char*>> {};

TEST_P(TensorInBlocks, TrainsTheSameModel) {
  const auto& [model, method] = GetParam();
  const auto& [architecture, half] = model;
  ExpectTrainsTheSameModel(
      BlocksJob(architecture, half, half ? 0.1 : 0),
      method == std::string("2d") ? Square({}) : Layers({}));
}

INSTANTIATE_TEST_SUITE_P(
    Architectures, TensorInBlocks,
    testing::Combine(
        testing::Values(std::tuple("gpt2", true), std::tuple("gpt2", false),
                        std::tuple("gpt_neox", false),
                        std::tuple("llama", true), std::tuple("mistral", false),
                        std::tuple("qwen2", true), std::tuple("qwen3", false)),
        testing::Values("2d", "2.5d")),
    [](const auto& info) {
      const auto& model = std::get<0>(info.param);
      return absl::StrReplaceAll(
          absl::StrCat(std::get<0>(model),
                       std::get<1>(model) ? "_dropout_" : "_",
                       std::get<1>(info.param)),
          {{".", "_"}});
    });

// With each of the others.
class TensorInBlocksInAnyPlan : public testing::TestWithParam<JobCut> {};

TEST_P(TensorInBlocksInAnyPlan, TrainsTheSameModel) {
  JobSpec job = BlocksJob("gpt2", /*tied=*/true, 0.1);
  job.mutable_training()->set_global_batch_size(16);
  ExpectTrainsTheSameModel(job, GetParam());
}

std::vector<JobCut> Cuts() {
  std::vector<JobCut> cuts = {
      Square({.data = 2}),
      Square({.data = 2, .zero = 1}),
      Square({.data = 2, .zero = 3}),
      Layers({.data = 2, .zero = 3}),
      Square({.data = 2, .zero = 3, .context = 2}),
      Square({.context = 2, .context_method = "ring"}),
      Layers({.context = 2}),
      Layers({.schedule = "1f1b", .pipeline = 2}),
  };
  for (const char* const schedule :
       {"naive", "gpipe", "1f1b", "interleaved_1f1b", "chimera", "zb_h1", "zb_h2", "zb_v"}) {
    cuts.push_back(Square({.schedule = schedule, .pipeline = 2}));
  }
  return cuts;
}

INSTANTIATE_TEST_SUITE_P(
    Others, TensorInBlocksInAnyPlan, testing::ValuesIn(Cuts()),
    [](const testing::TestParamInfo<JobCut>& info) {
      const JobCut& cut = info.param;
      return absl::StrCat(
          cut.tensor == 4 ? "square" : "layers", cut.data > 1 ? "_data" : "",
          cut.zero > 0 ? absl::StrCat("_zero", cut.zero) : "",
          cut.context > 1 ? absl::StrCat("_", cut.context_method) : "",
          cut.pipeline > 1 ? absl::StrCat("_", cut.schedule) : "");
    });

// Weights of several ages are those that each micro-batch computes with, also
// where they are sent once more for backward.
TEST(TensorInBlocksAsynchronous, TrainsWhatThePipelineTrains) {
  for (const char* const schedule : {"pipedream", "pipedream_2bw"}) {
    const JobSpec job = BlocksJob("gpt2", /*tied=*/false, 0.1);
    const JobCut whole = {.schedule = schedule, .pipeline = 2};
    const JobCut cut = Square(whole);
    ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}),
                       Train(CutJob(job, whole), {.ranks = whole.ranks()}),
                       Tolerance(1e-5, 1e-4));
  }
}

// Three by three.
TEST(TensorInBlocksOfNine, TrainTheSameModel) {
  JobSpec job = BlocksJob("llama", /*tied=*/false, 0.1);
  job.mutable_model()->set_num_key_value_heads(3);
  job.mutable_training()->set_micro_batch_size(3);
  job.mutable_training()->set_global_batch_size(12);
  JobCut cut = Square({});
  cut.tensor = 9;
  ExpectTrainsTheSameModel(job, cut);
}

TEST(TensorInBlocksRecompute, IsBitForBitTheSameTraining) {
  ExpectSameRecomputed(Square({}));
}

TEST(TensorInBlocksResume, AnyCutContinuesWhatAnotherBegan) {
  const std::vector<JobCut> cuts = {
      Square({}),
      {.tensor = 2, .sequence = true, .pipeline = 2},
      Layers({}),
      Square({.schedule = "zb_v", .pipeline = 2})};
  ExpectResumedByOthers(cuts, "tensor_2d_pieces");
}

}  // namespace
}  // namespace troupe
