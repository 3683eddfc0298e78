// What keeps experts evenly loaded is a function of the data: losses of
// routers, biases and room of experts are the single rank's however a job is
// cut, and go on from a checkpoint.
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/ranks_needed.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);

struct Recipe {
  const char* name;
  const char* routing;
  const char* balance;
};

JobSpec JobOf(const Recipe& recipe) {
  JobSpec job = WithFewSteps(TensorJob({.architecture = "mixtral"}));
  ExpertsSpec& experts = *job.mutable_model()->mutable_experts();
  experts.set_routing(recipe.routing);
  experts.set_balance(recipe.balance);
  experts.set_z_coefficient(0.02);
  const std::string balance = recipe.balance;
  // So strong that what is wrong shows within few steps.
  if (balance == "bias") experts.set_bias_rate(0.02);
  if (experts.routing() != "dropless") experts.set_capacity_factor(1);
  if (balance == "sequence" || balance == "global") {
    experts.set_balance_coefficient(0.2);
  }
  return job;
}

using Case = std::tuple<Recipe, JobCut>;
class Routers : public testing::TestWithParam<Case> {};

TEST_P(Routers, TrainTheSameModel) {
  const auto& [recipe, cut] = GetParam();
  const JobSpec job = JobOf(recipe);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  const RouterRecord& last = reference.steps[0].back().routers();
  EXPECT_GT(last.z_loss(), 0);
  EXPECT_GT(last.entropy(), 0);
  EXPECT_GT(last.busiest_over_mean(), 1);
  const std::string balance = recipe.balance;
  EXPECT_EQ(last.balance_loss() > 0,
            balance == "sequence" || balance == "global");
  EXPECT_EQ(last.dropped_share() > 0,
            std::string(recipe.routing) != "dropless");
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}), reference,
                     kTolerance);
}

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  const auto& [recipe, cut] = info.param;
  return absl::StrCat(
      recipe.name, "_", cut.schedule, cut.pipeline, "_data", cut.data, "_zero",
      cut.zero, "_tensor", cut.tensor, cut.sequence ? "_sequence" : "",
      "_context", cut.context, cut.context > 1 ? cut.context_method : "",
      cut.expert > 1 ? absl::StrCat("_expert", cut.expert) : "");
}

constexpr Recipe kSequence = {"BySequence", "dropless", "sequence"};
constexpr Recipe kGlobal = {"Global", "dropless", "global"};
constexpr Recipe kBias = {"Bias", "dropless", "bias"};
constexpr Recipe kCapacity = {"Capacity", "capacity", "sequence"};
constexpr Recipe kGShard = {"GShard", "gshard", "global"};

INSTANTIATE_TEST_SUITE_P(
    WholeSequences, Routers,
    testing::Combine(
        testing::Values(kSequence, kGlobal, kBias, kCapacity, kGShard),
        testing::Values(JobCut{.data = 2}, JobCut{.data = 2, .zero = 3},
                        JobCut{.data = 2, .zero = 2},
                        JobCut{.schedule = "zb_h1", .pipeline = 2, .data = 2},
                        JobCut{.tensor = 2})),
    NameOfCase);

INSTANTIATE_TEST_SUITE_P(
    CutSequences, Routers,
    testing::Combine(
        testing::Values(kSequence, kGlobal, kBias),
        testing::Values(
            JobCut{.tensor = 2, .sequence = true},
            JobCut{.tensor = 4, .sequence = true}, JobCut{.context = 2},
            JobCut{.context = 4},
            JobCut{.context = 2, .context_method = "ring"},
            JobCut{.data = 2, .zero = 3, .context = 2},
            JobCut{.tensor = 2, .sequence = true, .context = 2},
            JobCut{.tensor = 2, .sequence = true, .expert = 2},
            JobCut{.context = 2, .expert = 2},
            JobCut{.context = 2, .context_method = "ring", .expert = 2},
            JobCut{.tensor = 2, .sequence = true, .data = 2, .expert = 4})),
    NameOfCase);

// Places are given out over ranks that have some positions each.
INSTANTIATE_TEST_SUITE_P(
    RoomOfCutSequences, Routers,
    testing::Combine(
        testing::Values(kCapacity, kGShard),
        testing::Values(JobCut{.tensor = 2, .sequence = true},
                        JobCut{.tensor = 4, .sequence = true},
                        JobCut{.context = 2}, JobCut{.context = 4},
                        JobCut{.context = 2,
                               .context_method = "ring_self_attention"},
                        JobCut{.data = 2, .zero = 3, .context = 2},
                        JobCut{.tensor = 2, .sequence = true, .context = 2},
                        JobCut{.tensor = 2, .sequence = true, .expert = 2},
                        JobCut{.schedule = "zb_h1",
                               .pipeline = 2,
                               .context = 2,
                               .expert = 2})),
    NameOfCase);

// Also micro-batches of another size, and values that are computed again.
TEST(RoutersOfMicroBatches, TrainTheSameModel) {
  for (const Recipe& recipe : {kSequence, kGlobal, kBias, kGShard}) {
    SCOPED_TRACE(recipe.name);
    const JobSpec job = JobOf(recipe);
    JobSpec other = job;
    other.mutable_training()->set_micro_batch_size(1);
    other.mutable_memory()->mutable_recompute()->set_mode("full");
    ExpectSameTraining(Train(other, {}), OneRank(job), kTolerance);
  }
}

// Places of choices that are found once more for backward.
TEST(RoomOfCutSequencesAgain, TrainsTheSameModel) {
  for (const char* const mode : {"full", "selective"}) {
    for (const JobCut& cut :
         {JobCut{.context = 2, .expert = 2},
          JobCut{.tensor = 2, .sequence = true, .context = 2}}) {
      SCOPED_TRACE(absl::StrCat(mode, ", tensor ", cut.tensor));
      const JobSpec job = JobOf(kCapacity);
      JobSpec other = CutJob(job, cut);
      other.mutable_memory()->mutable_recompute()->set_mode(mode);
      ExpectSameTraining(Train(other, {.ranks = cut.ranks()}), OneRank(job),
                         kTolerance);
    }
  }
}

// The load of the step before, and the bias, are state.
TEST(RoutersOfACheckpoint, GoOnBitForBit) {
  for (const Recipe& recipe : {kGlobal, kBias}) {
    SCOPED_TRACE(recipe.name);
    JobSpec job = JobOf(recipe);
    const std::string directory =
        absl::StrCat(testing::TempDir(), "/routers_", recipe.name);
    std::filesystem::remove_all(directory);
    job.mutable_checkpoint()->set_directory(directory);
    job.mutable_checkpoint()->set_every(2);
    job.mutable_checkpoint()->set_keep(0);
    const TrainingRun whole = Train(job, {});
    ASSERT_TRUE(whole.status().ok()) << whole.status();
    job.clear_checkpoint();
    const TrainingRun resumed =
        Train(job, {.ranks = 1, .resume = CheckpointPath(directory, 2)});
    ASSERT_TRUE(resumed.status().ok()) << resumed.status();
    const std::vector<StepRecord>& want = whole.steps[0];
    ASSERT_EQ(resumed.steps[0].size() + 2, want.size());
    for (size_t i = 0; i < resumed.steps[0].size(); ++i) {
      const StepRecord& got = resumed.steps[0][i];
      EXPECT_EQ(got.loss(), want[i + 2].loss());
      EXPECT_EQ(got.routers().SerializeAsString(),
                want[i + 2].routers().SerializeAsString());
    }
    // By another plan, too.
    const JobCut cut = {.data = 2, .zero = 3};
    const TrainingRun other = Train(
        CutJob(job, cut), {.ranks = 2, .resume = CheckpointPath(directory, 2)});
    ASSERT_TRUE(other.status().ok()) << other.status();
    ExpectSameSteps(other.steps[0], want, kTolerance);
  }
}

TEST(RoutersRefuse, WhatTheyCannot) {
  const auto expect = [](const JobSpec& job, const char* text) {
    const auto plan = CompileForThreads(job, RanksNeeded(job));
    ASSERT_FALSE(plan.ok()) << text;
    EXPECT_THAT(std::string(plan.status().message()), testing::HasSubstr(text));
  };
  expect(CutJob(JobOf(kCapacity), {.context = 2, .context_method = "ring"}),
         "model.experts.routing: room of experts is given out by position, but "
         "along context each rank has two pieces");
  expect(CutJob(JobOf(kBias), {.schedule = "pipedream_2bw", .pipeline = 2}),
         "bias goes by the load of a whole step");
  JobSpec job = JobOf(kGlobal);
  job.mutable_training()->set_precision("bf16");
  job.mutable_training()->set_gradient_precision("parameters");
  expect(job, "training.gradient_precision: model.experts.balance global");
}

}  // namespace
}  // namespace troupe
