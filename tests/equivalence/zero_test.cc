// The promise, for what rests in slices over data replicas: ZeRO 1, 2 and 3,
// hybrid or not, train the model that a single rank trains.
#include <filesystem>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "proto/plan/memory.h"
#include "scheduler/pipelines/pipelines.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "tests/equivalence/cluster_of_threads.h"
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

JobSpec ZeroJob(const std::string& architecture, bool tied) {
  JobSpec job = WithFewSteps(
      TensorJob({.architecture = architecture, .tied = tied, .dropout = 0.1}));
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_global_batch_size(12);  // 2, 3 and 4 divide it
  return job;
}

std::string NameOf(const JobCut& cut) {
  return absl::StrCat(
      "zero", cut.zero,
      cut.zero_size > 0 ? absl::StrCat("by", cut.zero_size) : "",
      cut.zero_weights.empty() ? "" : "_", absl::StrJoin(cut.zero_weights, "_"),
      cut.reshard ? "" : "_kept",
      cut.unsharded_bytes < 0 ? ""
                              : absl::StrCat("_ahead", cut.unsharded_bytes),
      "_data", cut.data,
      cut.tensor > 1 ? absl::StrCat("_tensor", cut.tensor) : "",
      cut.sequence ? "_sequence" : "",
      cut.pipeline > 1 ? absl::StrCat("_", cut.schedule) : "");
}

std::vector<JobCut> Cuts() {
  std::vector<JobCut> cuts;
  for (const int zero : {1, 2, 3}) {
    for (const int data : {1, 2, 3, 4}) {
      cuts.push_back({.data = data, .zero = zero});
    }
    cuts.push_back({.data = 4, .zero = zero, .zero_size = 2});
    cuts.push_back({.data = 4, .zero = zero, .zero_size = 1});
    // Slices by weights: far from even, and so small that some of a unit's
    // stretches leave a rank nothing.
    cuts.push_back({.data = 2, .zero = zero, .zero_weights = {3, 1}});
    cuts.push_back({.data = 3, .zero = zero, .zero_weights = {1, 1000, 7}});
    cuts.push_back({.data = 4,
                    .zero = zero,
                    .zero_size = 2,
                    .zero_weights = {1, 4, 1, 4}});
    cuts.push_back({.tensor = 2,
                    .pipeline = 2,
                    .data = 2,
                    .zero = zero,
                    .zero_weights = {2, 5}});
    cuts.push_back({.tensor = 2, .data = 2, .zero = zero});
    cuts.push_back({.tensor = 4, .sequence = true, .data = 2, .zero = zero});
    cuts.push_back(
        {.tensor = 2, .pipeline = 2, .data = 4, .zero = zero, .zero_size = 2});
    for (const Pipeline& pipeline : Pipelines()) {
      if (pipeline.asynchronous) continue;
      cuts.push_back({.schedule = std::string(pipeline.name),
                      .pipeline = 2,
                      .data = 2,
                      .zero = zero,
                      .reshard = zero < 3 || cuts.size() % 2 == 0});
    }
  }
  // Gathers that begin when they are needed, somewhat earlier, and at once.
  for (const int64_t bytes : {0, 20'000, 60'000, 100'000'000}) {
    for (const bool reshard : {true, false}) {
      cuts.push_back(
          {.data = 2, .zero = 3, .reshard = reshard, .unsharded_bytes = bytes});
      cuts.push_back({.schedule = "zb_v",
                      .pipeline = 2,
                      .data = 2,
                      .zero = 3,
                      .reshard = reshard,
                      .unsharded_bytes = bytes});
    }
  }
  return cuts;
}

using Case = std::tuple<std::string, JobCut>;

// Every other cut is one of a model whose tables are tied.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const JobCut& cut : Cuts()) {
    cases.emplace_back(cases.size() % 2 == 0 ? "gpt2" : "llama", cut);
  }
  return cases;
}

class Zero : public testing::TestWithParam<Case> {};

TEST_P(Zero, TrainsTheSameModel) {
  const auto& [architecture, cut] = GetParam();
  JobSpec job = ZeroJob(architecture, architecture == "gpt2");
  job.mutable_model()->set_num_hidden_layers(4);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  EXPECT_LT(reference.steps[0].back().loss(),
            reference.steps[0][0].loss() - 0.1);
  const TrainingRun run = Train(CutJob(job, cut), {.ranks = cut.ranks()});
  ExpectSameTraining(run, reference, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(InProcess, Zero, testing::ValuesIn(Cases()),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               NameOf(std::get<1>(info.param)));
                         });

// Ranks that are in different steps, where no update waits for the norm.
TEST(ZeroOverlap, TrainsTheSameModel) {
  for (const char* const schedule : {"zb_h2", "zb_v"}) {
    for (const int zero : {1, 3}) {
      SCOPED_TRACE(absl::StrCat(schedule, ", zero ", zero));
      JobSpec job = ZeroJob("gpt2", true);
      job.mutable_model()->set_num_hidden_layers(4);
      job.mutable_training()->set_gradient_clipping(0);
      const JobCut cut = {
          .schedule = schedule, .pipeline = 2, .data = 2, .zero = zero};
      const TrainingRun run = Train(CutJob(job, cut), {.ranks = cut.ranks()});
      EXPECT_EQ(run.plan.derived().report_lag(), 1);
      ExpectSameTraining(run, OneRank(job), kTolerance);
    }
  }
}

// How far ahead gathers run says when things happen, and nothing else.
TEST(ZeroGathers, RunAheadToTheSameBits) {
  const JobSpec job = ZeroJob("gpt2", true);
  JobCut cut = {.data = 2, .zero = 3, .unsharded_bytes = 0};
  const TrainingRun when_used = Train(CutJob(job, cut), {.ranks = 2});
  ASSERT_TRUE(when_used.status().ok()) << when_used.status();
  std::set<std::string> plans = {when_used.plan.fingerprint()};
  for (const int64_t bytes : {-1, 60'000, 100'000, 100'000'000}) {
    SCOPED_TRACE(bytes);
    cut.unsharded_bytes = bytes;
    const TrainingRun run = Train(CutJob(job, cut), {.ranks = 2});
    ASSERT_TRUE(run.status().ok()) << run.status();
    plans.insert(run.plan.fingerprint());
    ASSERT_EQ(run.steps[0].size(), when_used.steps[0].size());
    for (size_t i = 0; i < run.steps[0].size(); ++i) {
      EXPECT_EQ(run.steps[0][i].loss(), when_used.steps[0][i].loss());
      EXPECT_EQ(run.steps[0][i].grad_norm(), when_used.steps[0][i].grad_norm());
    }
  }
  EXPECT_GE(plans.size(), 4u) << "of all ways";
}

// Units of fewer lines than ranks.
TEST(ZeroEmptySlices, TrainTheSameModelAndAreSaved) {
  JobSpec job = ZeroJob("gpt2", true);
  job.mutable_training()->set_global_batch_size(16);
  job.mutable_training()->set_validate_every(0);
  job.mutable_checkpoint()->set_directory(NewDirectory("zero_empty_whole"));
  const std::string whole =
      CheckpointPath(job.checkpoint().directory(), kFewSteps);
  ASSERT_TRUE(Train(job, {}).status().ok());
  job = CutJob(job, {.data = 8, .zero = 3});
  const std::string directory = NewDirectory("zero_empty");
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_training()->set_stop_after(kFewSteps / 2);
  ASSERT_TRUE(Train(job, {.ranks = 8}).status().ok());
  job.mutable_training()->clear_stop_after();
  const TrainingRun run = Train(job, {.ranks = 8, .resume = "latest"});
  ASSERT_TRUE(run.status().ok()) << run.status();
  EXPECT_LT(CompareStates(CheckpointPath(directory, kFewSteps), whole).weights,
            1e-4);
}

// What is predicted of memory is what each rank has: slices of the one and of
// the other.
TEST(ZeroWeights, MemoryFollowsThem) {
  for (const int zero : {1, 2, 3}) {
    const JobSpec job =
        CutJob(ZeroJob("gpt2", true), {.data = 3, .zero = zero});
    JobSpec weighted = job;
    for (const int weight : {4, 1, 1}) {
      weighted.mutable_parallelism()->add_zero_weights(weight);
    }
    const absl::StatusOr<Plan> even = CompileForThreads(job, 3);
    const absl::StatusOr<Plan> plan = CompileForThreads(weighted, 3);
    ASSERT_TRUE(even.ok()) << even.status();
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->roles_size(), 2);
    const auto moments = [](const Plan& of, int rank) {
      return static_cast<double>(PredictedBytes(of, rank, "optimizer_moments"));
    };
    const double third = moments(*even, 0);
    EXPECT_NEAR(moments(*plan, 0) / third, 2, 0.02);
    EXPECT_NEAR(moments(*plan, 1) / third, 0.5, 0.02);
    EXPECT_EQ(moments(*plan, 1), moments(*plan, 2));
    // A gather waits for the largest slice.
    EXPECT_GT(plan->prediction().step_seconds(),
              even->prediction().step_seconds());
  }
}

TEST(ZeroBf16, TrainsTheSameModelButForItsRounding) {
  for (const std::string architecture : {"gpt2", "llama"}) {
    JobSpec job = ZeroJob(architecture, true);
    job.mutable_training()->set_precision("bf16");
    const TrainingRun& reference = OneRank(job);
    for (const int zero : {1, 2, 3}) {
      const JobCut cut = {.data = 2, .zero = zero};
      ExpectSameTraining(Train(CutJob(job, cut), {.ranks = 2}), reference,
                         1e-2);
    }
  }
}

TEST(ZeroResume, AnyPlanContinuesWhatAnotherBegan) {
  constexpr int kSteps = 10;
  for (const std::string precision : {"f32", "bf16"}) {
    JobSpec job = ZeroJob("gpt2", true);
    job.mutable_training()->set_steps(kSteps);
    job.mutable_training()->set_precision(precision);
    job.mutable_training()->set_validate_every(0);
    job.mutable_checkpoint()->set_directory(NewDirectory("zero_whole"));
    const std::string whole_at =
        CheckpointPath(job.checkpoint().directory(), kSteps);
    const TrainingRun whole = Train(job, {});
    ASSERT_TRUE(whole.status().ok()) << whole.status();
    const std::string directory = NewDirectory("zero_pieces");
    job.mutable_checkpoint()->set_directory(directory);
    const JobCut cuts[] = {{.data = 4, .zero = 3},
                           {.data = 2, .zero = 1, .zero_weights = {1, 3}},
                           {.tensor = 2, .pipeline = 2},
                           {.data = 4, .zero = 2, .zero_size = 2},
                           {}};
    int64_t done = 0;
    for (const JobCut& cut : cuts) {
      SCOPED_TRACE(
          absl::StrCat(precision, " from step ", done, ", ", NameOf(cut)));
      JobSpec part = CutJob(job, cut);
      part.mutable_checkpoint()->set_background(cut.zero == 3);
      part.mutable_training()->set_stop_after(done + 2);
      const TrainingRun run = Train(
          part, {.ranks = cut.ranks(), .resume = done > 0 ? "latest" : ""});
      ASSERT_TRUE(run.status().ok()) << run.status();
      done += 2;
    }
    const StateDifference states =
        CompareStates(CheckpointPath(directory, kSteps), whole_at);
    EXPECT_LT(states.weights, precision == "f32" ? 1e-4 : 1e-2);
    EXPECT_LT(states.moments, precision == "f32" ? 1e-4 : 1e-1);
  }
}

TEST(ZeroResume, TheSamePlanContinuesBitForBit) {
  for (const int zero : {1, 2, 3}) {
    JobSpec job =
        CutJob(ZeroJob("llama", false), {.tensor = 2, .data = 2, .zero = zero});
    job.mutable_training()->set_precision("bf16");
    job.mutable_training()->set_validate_every(0);
    const std::string whole = NewDirectory("zero_exact_whole");
    job.mutable_checkpoint()->set_directory(whole);
    ASSERT_TRUE(Train(job, {.ranks = 4}).status().ok());
    const std::string halves = NewDirectory("zero_exact_half");
    job.mutable_checkpoint()->set_directory(halves);
    job.mutable_training()->set_stop_after(kFewSteps / 2);
    ASSERT_TRUE(Train(job, {.ranks = 4}).status().ok());
    job.mutable_training()->clear_stop_after();
    const TrainingRun rest = Train(job, {.ranks = 4, .resume = "latest"});
    ASSERT_TRUE(rest.status().ok()) << rest.status();
    const StateDifference states = CompareStates(
        CheckpointPath(halves, kFewSteps), CheckpointPath(whole, kFewSteps));
    EXPECT_EQ(states.weights, 0);
    EXPECT_EQ(states.moments, 0);
  }
}

}  // namespace
}  // namespace troupe
