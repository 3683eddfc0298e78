// The promise, for sequences that are cut over ranks: context parallelism
// trains the model that a single rank trains.
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/pipelines/pipelines.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/in_pieces.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/state_difference.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);

std::string NewDirectory(const std::string& name) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(directory);
  return directory;
}

std::string NameOf(const JobCut& cut) {
  return absl::StrCat(
      cut.context_method, cut.context,
      cut.ulysses_size > 0 ? absl::StrCat("by", cut.ulysses_size) : "",
      cut.data > 1 ? absl::StrCat("_data", cut.data) : "",
      cut.tensor > 1 ? absl::StrCat("_tensor", cut.tensor) : "",
      cut.sequence ? "_sequence" : "",
      cut.zero > 0 ? absl::StrCat("_zero", cut.zero) : "",
      cut.zero_size > 0 ? absl::StrCat("by", cut.zero_size) : "",
      cut.pipeline > 1 ? absl::StrCat("_", cut.schedule) : "");
}

// Two sequences at once, so that what a rank has of them lies apart; every
// other case has dropout.
using Case = std::tuple<std::string, JobCut>;  // architecture

class Context : public testing::TestWithParam<Case> {};

TEST_P(Context, TrainsTheSameModel) {
  const auto& [architecture, cut] = GetParam();
  JobSpec job =
      WithFewSteps(TensorJob({.architecture = architecture,
                              .tied = cut.context % 4 == 0,
                              .dropout = cut.context % 4 == 0 ? 0.1 : 0,
                              .key_value_heads = cut.context == 3 ? 3 : 2,
                              .positions = cut.context == 8 ? 48 : 24}));
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  EXPECT_LT(reference.steps[0].back().loss(),
            reference.steps[0][0].loss() - 0.1);
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}), reference,
                     kTolerance);
}

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  return absl::StrCat(std::get<0>(info.param), "_",
                      NameOf(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(
    Architectures, Context,
    testing::Combine(
        testing::Values("gpt2", "gpt_neox", "llama", "mistral", "qwen2",
                        "qwen3", "mixtral", "qwen2_moe", "qwen3_moe", "olmoe"),
        testing::Values(JobCut{.context = 2}, JobCut{.context = 4},
                        JobCut{.context = 4, .context_method = "ring"},
                        JobCut{.context = 4,
                               .context_method = "ring_self_attention"})),
    NameOfCase);

// Values are narrower than keys, which rings that hand keys around refuse.
INSTANTIATE_TEST_SUITE_P(
    Latents, Context,
    testing::Combine(
        testing::Values("deepseek_v3"),
        testing::Values(JobCut{.context = 2}, JobCut{.context = 4},
                        JobCut{.context = 4,
                               .context_method = "ring_self_attention"})),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    Ranks, Context,
    testing::Combine(
        testing::Values("gpt2", "llama"),
        testing::Values(
            JobCut{.context = 3}, JobCut{.context = 8},
            JobCut{.context = 2, .context_method = "ring"},
            JobCut{.context = 3, .context_method = "ring"},
            JobCut{.context = 8, .context_method = "ring"},
            JobCut{.context = 3, .context_method = "ring_self_attention"},
            JobCut{.context = 8, .context_method = "ring_self_attention"},
            JobCut{.context = 4, .context_method = "usp", .ulysses_size = 2},
            JobCut{.context = 8, .context_method = "usp", .ulysses_size = 2},
            JobCut{.context = 8, .context_method = "usp", .ulysses_size = 4})),
    NameOfCase);

// With each of the others; of the schedules each, with and without ZeRO.
std::vector<JobCut> Cuts(const std::string& method) {
  std::vector<JobCut> cuts = {
      {.data = 2, .context = 2},
      {.data = 2, .zero = 3, .context = 2},
      {.data = 2, .zero = 2, .context = 4},
      {.zero = 3, .context = 4},
      {.data = 2, .zero = 1, .zero_size = 2, .context = 4},
      {.data = 4, .zero = 3, .zero_size = 4, .context = 2},
      {.data = 4, .zero = 2, .zero_size = 2, .context = 2},
      {.tensor = 2, .context = 2},
      {.tensor = 2, .sequence = true, .context = 2},
      {.tensor = 2, .sequence = true, .data = 2, .zero = 3, .context = 2},
      {.tensor = 2, .context = 4},
      {.tensor = 4, .sequence = true, .context = 2},
  };
  for (const Pipeline& pipeline : Pipelines()) {
    if (pipeline.asynchronous) continue;
    const bool odd = cuts.size() % 2 == 1;
    cuts.push_back({.schedule = std::string(pipeline.name),
                    .pipeline = 2,
                    .data = odd ? 2 : 1,
                    .zero = odd ? 3 : 0,
                    .context = 2});
  }
  for (JobCut& cut : cuts) cut.context_method = method;
  return cuts;
}

class ContextInAnyPlan : public testing::TestWithParam<Case> {};

TEST_P(ContextInAnyPlan, TrainsTheSameModel) {
  const auto& [architecture, cut] = GetParam();
  JobSpec job = WithFewSteps(TensorJob({.architecture = architecture,
                                        .tied = architecture == "gpt2",
                                        .dropout = 0.1}));
  job.mutable_model()->set_num_hidden_layers(4);
  job.mutable_training()->set_micro_batch_size(cut.tensor > 1 ? 2 : 1);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}), reference,
                     kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Ulysses, ContextInAnyPlan,
                         testing::Combine(testing::Values("gpt2", "llama"),
                                          testing::ValuesIn(Cuts("ulysses"))),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(Ring, ContextInAnyPlan,
                         testing::Combine(testing::Values("llama"),
                                          testing::ValuesIn(Cuts("ring"))),
                         NameOfCase);
INSTANTIATE_TEST_SUITE_P(
    RingSelfAttention, ContextInAnyPlan,
    testing::Combine(
        testing::Values("llama"),
        testing::Values(JobCut{.data = 2,
                               .zero = 3,
                               .context = 2,
                               .context_method = "ring_self_attention"},
                        JobCut{.tensor = 2,
                               .sequence = true,
                               .context = 2,
                               .context_method = "ring_self_attention"},
                        JobCut{.schedule = "zb_v",
                               .pipeline = 2,
                               .context = 2,
                               .context_method = "ring_self_attention"},
                        JobCut{.schedule = "gpipe",
                               .pipeline = 2,
                               .data = 2,
                               .zero = 2,
                               .context = 2,
                               .context_method = "ring_self_attention"})),
    NameOfCase);
INSTANTIATE_TEST_SUITE_P(
    Usp, ContextInAnyPlan,
    testing::Combine(testing::Values("gpt2"),
                     testing::Values(JobCut{.data = 2,
                                            .zero = 3,
                                            .context = 4,
                                            .context_method = "usp",
                                            .ulysses_size = 2},
                                     JobCut{.zero = 2,
                                            .zero_size = 2,
                                            .context = 4,
                                            .context_method = "usp",
                                            .ulysses_size = 2},
                                     JobCut{.tensor = 2,
                                            .sequence = true,
                                            .context = 4,
                                            .context_method = "usp",
                                            .ulysses_size = 2},
                                     JobCut{.schedule = "zb_h1",
                                            .pipeline = 2,
                                            .context = 4,
                                            .context_method = "usp",
                                            .ulysses_size = 2})),
    NameOfCase);

TEST(ContextRecompute, IsBitForBitTheSameTraining) {
  JobSpec job =
      WithFewSteps(TensorJob({.architecture = "llama", .dropout = 0.1}));
  for (const JobCut& cut :
       {JobCut{.context = 2}, JobCut{.context = 4, .context_method = "ring"},
        JobCut{.context = 2, .context_method = "ring_self_attention"}}) {
    JobSpec as_cut = CutJob(job, cut);
    const TrainingRun reference = Train(as_cut, {.ranks = cut.ranks()});
    for (const char* const mode : {"selective", "full"}) {
      as_cut.mutable_memory()->mutable_recompute()->set_mode(mode);
      ExpectSameTraining(Train(as_cut, {.ranks = cut.ranks()}), reference, 0.0);
    }
  }
}

TEST(ContextBf16, TrainsTheSameModelButForItsRounding) {
  for (const std::string architecture : {"gpt2", "llama"}) {
    JobSpec job = WithFewSteps(TensorJob({.architecture = architecture}));
    job.mutable_training()->set_precision("bf16");
    const TrainingRun& reference = OneRank(job);
    for (const char* const method :
         {"ulysses", "ring", "ring_self_attention"}) {
      const JobCut cut = {.context = 4, .context_method = method};
      ExpectSameTraining(Train(CutJob(job, cut), {.ranks = 4}), reference,
                         1e-2);
    }
  }
}

TEST(ContextResume, AnyCutContinuesWhatAnotherBegan) {
  constexpr int kSteps = 10;
  JobSpec job = TensorJob({.architecture = "llama", .dropout = 0.1});
  job.mutable_training()->set_steps(kSteps);
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_validate_every(0);
  job.mutable_checkpoint()->set_directory(NewDirectory("context_whole"));
  const std::string whole_at =
      CheckpointPath(job.checkpoint().directory(), kSteps);
  const TrainingRun whole = Train(job, {});
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  const std::string directory = NewDirectory("context_pieces");
  job.mutable_checkpoint()->set_directory(directory);
  const std::vector<JobCut> cuts = {
      {.context = 4},
      {.tensor = 2, .context = 4, .context_method = "ring"},
      {},
      {.pipeline = 2, .data = 2, .zero = 3, .context = 2},
      {.context = 4, .context_method = "usp", .ulysses_size = 2}};
  ASSERT_NO_FATAL_FAILURE(ExpectSameInPieces(job, cuts, whole, kTolerance));
  const StateDifference states =
      CompareStates(CheckpointPath(directory, kSteps), whole_at);
  EXPECT_LT(states.weights, 1e-4);
  EXPECT_LT(states.moments, 1e-4);
}

}  // namespace
}  // namespace troupe
