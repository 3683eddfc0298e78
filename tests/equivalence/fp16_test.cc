// fp16 trains the model that f32 trains, cut however; a step whose gradients
// overflow updates nothing on any rank, and training goes on as if it had not
// been but for the data; all of that is in the checkpoint. Gradients in the
// type of the parameters take half the memory and half the bytes sent.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/state_difference.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

// A master weight that lies near the middle between two numbers may be rounded
// to either, which differ by one part in 2048.
const Tolerance kRounding = {1e-4, 2e-3};

JobSpec Fp16Job(const std::string& architecture = "gpt2") {
  JobSpec job = TensorJob({.architecture = architecture});
  job.mutable_training()->set_precision("fp16");
  return job;
}

double FurthestLoss(const TrainingRun& a, const TrainingRun& b) {
  double furthest = 0;
  for (size_t i = 0; i < a.steps[0].size(); ++i) {
    const double loss = b.steps[0][i].loss();
    furthest = std::max(furthest, std::abs(a.steps[0][i].loss() / loss - 1));
  }
  return furthest;
}

TEST(Fp16, TrainsTheModelOfF32) {
  for (const std::string architecture : {"gpt2", "llama"}) {
    JobSpec job = Fp16Job(architecture);
    const TrainingRun fp16 = Train(job, {});
    job.mutable_training()->set_precision("f32");
    const TrainingRun f32 = Train(job, {});
    ASSERT_TRUE(fp16.status().ok()) << fp16.status();
    ASSERT_TRUE(f32.status().ok()) << f32.status();
    EXPECT_LT(fp16.steps[0].back().loss(), fp16.steps[0][0].loss() - 0.3);
    EXPECT_EQ(fp16.steps[0].back().skipped_steps(), 0);
    EXPECT_EQ(fp16.steps[0].back().loss_scale(), 65536);
    EXPECT_EQ(f32.steps[0].back().loss_scale(), 0);
    const double apart = FurthestLoss(fp16, f32);
    std::printf("%s: losses within %.1e of f32's\n", architecture.c_str(),
                apart);
    EXPECT_GT(apart, 0) << "both ran in one precision";
    EXPECT_LT(apart, 1e-3);
  }
}

TEST(Fp16, CutHoweverTrainsTheSameModelButForItsRounding) {
  const JobCut cuts[] = {{.data = 2},
                         {.tensor = 2, .sequence = true},
                         {.schedule = "gpipe", .pipeline = 2},
                         {.schedule = "zb_h2", .pipeline = 2},
                         {.data = 2, .zero = 1},
                         {.data = 2, .zero = 2},
                         {.tensor = 2, .data = 2, .zero = 3}};
  const JobSpec job = Fp16Job();
  const TrainingRun reference = Train(job, {});
  for (const JobCut& cut : cuts) {
    SCOPED_TRACE(absl::StrCat("tensor ", cut.tensor, ", ", cut.pipeline,
                              " stages of ", cut.schedule, ", data ", cut.data,
                              ", zero ", cut.zero));
    const TrainingRun run = Train(CutJob(job, cut), {.ranks = cut.ranks()});
    ExpectSameTraining(run, reference, kRounding);
    EXPECT_EQ(run.steps[0].back().loss_scale(), 65536);
    const StepDifference apart = FurthestApart(run, reference);
    std::printf("losses within %.1e, norms %.1e\n", apart.losses, apart.norms);
  }
}

TEST(Fp16, RecomputedIsTheSameBitForBit) {
  JobSpec job = Fp16Job();
  const TrainingRun kept = Train(job, {});
  ASSERT_TRUE(kept.status().ok()) << kept.status();
  for (const char* how : {"selective", "full"}) {
    job.mutable_memory()->mutable_recompute()->set_mode(how);
    const TrainingRun again = Train(job, {});
    ASSERT_TRUE(again.status().ok()) << again.status();
    for (size_t i = 0; i < kept.steps[0].size(); ++i) {
      EXPECT_EQ(again.steps[0][i].loss(), kept.steps[0][i].loss());
      EXPECT_EQ(again.steps[0][i].grad_norm(), kept.steps[0][i].grad_norm());
    }
  }
}

// Of a job that ends after `steps`, where it left its last checkpoint.
std::string CheckpointAfter(JobSpec job, const std::string& name, int64_t steps,
                            const TrainOptions& options) {
  const std::string directory = absl::StrCat(testing::TempDir(), "/", name);
  job.mutable_training()->set_stop_after(steps);
  job.mutable_checkpoint()->set_directory(directory);
  const TrainingRun run = Train(job, options);
  EXPECT_TRUE(run.status().ok()) << run.status();
  return CheckpointPath(directory, steps);
}

// No gradient of fp16 survives it.
constexpr double kHuge = 0x1p60;

// A cut whose states and gradients rest somewhere. Where both are on the
// device, a step that is left out zeros the gradients; elsewhere the next step
// begins them anew.
struct CutInTiers {
  JobCut cut;
  std::string optimizer = "device";
  std::string gradients = "device";

  int ranks() const { return cut.ranks(); }
  JobSpec Of(const JobSpec& job) const {
    JobSpec result = CutJob(job, cut);
    result.mutable_memory()->set_optimizer(optimizer);
    result.mutable_memory()->set_gradients(gradients);
    return result;
  }
};

TEST(Overflow, UpdatesNothingOnAnyRank) {
  JobSpec job = Fp16Job();
  job.mutable_training()->set_validate_every(0);
  job.mutable_training()->set_loss_scale(kHuge);
  const CutInTiers cuts[] = {{},
                             {{.data = 2}},
                             {{.tensor = 2, .pipeline = 2}},
                             {{.data = 2, .zero = 1}},
                             {{.data = 2, .zero = 3}},
                             {{}, "host", "device"},
                             {{}, "device", "host"},
                             {{.data = 2}, "host", "host"},
                             {{.data = 2, .zero = 3}, "nvme", "host"}};
  // None of the three steps moves what the first began with.
  std::vector<std::string> saved;
  for (const CutInTiers& cut : cuts) {
    SCOPED_TRACE(absl::StrCat("optimizer on ", cut.optimizer, ", gradients on ",
                              cut.gradients));
    const JobSpec cut_job = cut.Of(job);
    for (const int64_t steps : {1, 3}) {
      saved.push_back(CheckpointAfter(
          cut_job, absl::StrCat("overflow_", saved.size()), steps,
          {.ranks = cut.ranks(),
           .on_step = [](int, const StepRecord& record, const auto&) {
             EXPECT_TRUE(record.skipped());
             EXPECT_EQ(record.skipped_steps(), record.step());
             EXPECT_TRUE(std::isfinite(record.loss()));
             EXPECT_FALSE(std::isfinite(record.grad_norm()));
           }}));
      const StateDifference states = CompareStates(saved.back(), saved[0]);
      EXPECT_EQ(states.weights, 0);
      EXPECT_TRUE(std::isnan(states.moments)) << "not all are 0, of 0";
      const auto manifest = ReadManifest(saved.back());
      ASSERT_TRUE(manifest.ok()) << manifest.status();
      EXPECT_EQ(manifest->loss_scale.skipped_steps, steps);
      EXPECT_EQ(manifest->loss_scale.scale, kHuge);
      EXPECT_EQ(manifest->samples_consumed, 8 * steps);
    }
  }
}

// A run whose first step overflowed and one whose first step moved nothing, as
// its learning rate is nearly 0, go on with the same steps.
TEST(Overflow, WhatFollowsIsAsIfTheStepHadNotBeen) {
  JobSpec job = Fp16Job();
  job.mutable_training()->set_validate_every(0);
  job.clear_optimizer();
  job.mutable_optimizer()->set_name("sgd");
  job.mutable_optimizer()->set_lr(0.1);
  job.mutable_parallelism()->set_data(2);
  job.mutable_training()->set_micro_batch_size(2);
  JobSpec overflows = job;
  overflows.mutable_training()->set_loss_scale(kHuge);
  JobSpec stands_still = job;
  stands_still.mutable_optimizer()->set_lr(1e-30);
  std::vector<TrainingRun> runs;
  for (const JobSpec& first : {overflows, stands_still}) {
    const std::string at = CheckpointAfter(
        first, absl::StrCat("as_if_", runs.size()), 1, {.ranks = 2});
    job.mutable_training()->set_loss_scale(1024);
    runs.push_back(Train(job, {.ranks = 2, .resume = at}));
    ASSERT_TRUE(runs.back().status().ok()) << runs.back().status();
  }
  ASSERT_EQ(runs[0].steps[0].size(), 19u);
  for (size_t i = 0; i < 19; ++i) {
    const StepRecord& got = runs[0].steps[0][i];
    const StepRecord& want = runs[1].steps[0][i];
    EXPECT_EQ(got.loss(), want.loss()) << "step " << want.step();
    EXPECT_EQ(got.grad_norm(), want.grad_norm()) << "step " << want.step();
    EXPECT_EQ(got.skipped_steps(), 1);
    EXPECT_EQ(want.skipped_steps(), 0);
  }
}

// From a scale that is far too large it finds one that is not; cut in the
// middle of that, by the same plan it is the same bit for bit, and by any other
// the same but for rounding: the scales are.
TEST(Overflow, ResumesInTheMiddleOfBackoff) {
  JobSpec job = Fp16Job();
  job.mutable_training()->set_validate_every(0);
  JobSpec overflows = job;
  overflows.mutable_training()->set_loss_scale(0x1p32);
  const std::string first = CheckpointAfter(overflows, "backoff_0", 1, {});
  const TrainingRun whole = Train(job, {.resume = first});
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  const std::vector<StepRecord>& want = whole.steps[0];
  ASSERT_EQ(want.size(), 19u);
  EXPECT_EQ(want[0].loss_scale(), 0x1p32);
  EXPECT_TRUE(want[0].skipped());
  EXPECT_EQ(want[1].loss_scale(), 0x1p31);
  EXPECT_FALSE(want.back().skipped());
  EXPECT_EQ(
      want.back().loss_scale(),
      std::ldexp(0x1p32, 1 - static_cast<int>(want.back().skipped_steps())));
  ASSERT_TRUE(want[3].skipped());
  // Steps 2 to 4, then the others.
  JobSpec part = job;
  part.mutable_training()->set_stop_after(4);
  part.mutable_checkpoint()->set_directory(
      absl::StrCat(testing::TempDir(), "/backoff_1"));
  ASSERT_TRUE(Train(part, {.resume = first}).status().ok());
  const std::string middle = CheckpointPath(part.checkpoint().directory(), 4);
  const CutInTiers cuts[] = {{},
                             {{.data = 2, .zero = 2}},
                             {{.tensor = 2, .pipeline = 2}},
                             {{}, "host", "device"},
                             {{}, "device", "host"},
                             {{}, "nvme", "host"},
                             {{.data = 2, .zero = 2}, "host", "host"}};
  for (const CutInTiers& cut : cuts) {
    SCOPED_TRACE(absl::StrCat("optimizer on ", cut.optimizer, ", gradients on ",
                              cut.gradients));
    const TrainingRun rest =
        Train(cut.Of(job), {.ranks = cut.ranks(), .resume = middle});
    ASSERT_TRUE(rest.status().ok()) << rest.status();
    for (const std::vector<StepRecord>& got : rest.steps) {
      ASSERT_EQ(got.size(), 16u);
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].loss_scale(), want[i + 3].loss_scale());
        EXPECT_EQ(got[i].skipped_steps(), want[i + 3].skipped_steps());
        EXPECT_EQ(got[i].skipped(), want[i + 3].skipped());
        const double loss = want[i + 3].loss();
        EXPECT_NEAR(got[i].loss(), loss, cut.ranks() == 1 ? 0 : 2e-3 * loss);
      }
    }
  }
}

// Of an f32 job and a bf16 one, and back.
TEST(Overflow, AnyPrecisionGoesOnFromAnyOther) {
  JobSpec job = Fp16Job();
  job.mutable_training()->set_validate_every(0);
  std::string at;
  int64_t steps = 0;
  for (const std::string precision : {"f32", "fp16", "bf16", "fp16", "f32"}) {
    job.mutable_training()->set_precision(precision);
    steps += 4;
    at = CheckpointAfter(job, absl::StrCat("precisions_", steps), steps,
                         {.resume = at});
    const auto manifest = ReadManifest(at);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    // The scale is kept while others train.
    EXPECT_EQ(manifest->loss_scale.scale, steps == 4 ? 0 : 65536);
    EXPECT_EQ(manifest->loss_scale.good_steps, steps < 8    ? 0
                                               : steps < 16 ? 4
                                                            : 8);
  }
}

// Of all copies of gradients of the plan's ranks, and all that a step sends.
struct Gradients {
  int64_t bytes = 0;
  uint64_t sent = 0;
};

Gradients GradientsOf(const TrainingRun& run) {
  Gradients gradients;
  for (const RankPrediction& rank : run.plan.prediction().ranks()) {
    for (const MemoryItem& item : rank.memory()) {
      if (item.item() == "gradients") gradients.bytes += item.bytes();
    }
  }
  for (const std::vector<uint64_t>& sent : run.sent_bytes) {
    gradients.sent += sent[2] - sent[1];
  }
  return gradients;
}

TEST(GradientPrecision, OfTheParametersTakesHalfAndTrainsTheModel) {
  for (const std::string precision : {"bf16", "fp16"}) {
    JobSpec job = TensorJob({});
    job.mutable_training()->set_precision(precision);
    job.mutable_training()->set_validate_every(0);
    const TrainingRun wide = Train(job, {});
    for (const int zero : {0, 1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat(precision, ", zero ", zero));
      const JobCut cut = {.data = 2, .zero = zero};
      job.mutable_training()->set_gradient_precision("f32");
      const TrainingRun f32 = Train(CutJob(job, cut), {.ranks = 2});
      job.mutable_training()->set_gradient_precision("parameters");
      const TrainingRun narrow = Train(CutJob(job, cut), {.ranks = 2});
      ASSERT_TRUE(f32.status().ok()) << f32.status();
      ASSERT_TRUE(narrow.status().ok()) << narrow.status();
      const double apart = FurthestLoss(narrow, wide);
      EXPECT_GT(FurthestLoss(narrow, f32), 0);
      EXPECT_LT(apart, precision == "bf16" ? 1e-2 : 2e-3);
      const Gradients whole = GradientsOf(f32), half = GradientsOf(narrow);
      EXPECT_EQ(2 * half.bytes, whole.bytes);
      EXPECT_LT(half.sent, whole.sent);
      if (zero == 0) {
        EXPECT_NEAR(2.0 * half.sent / whole.sent, 1, 0.01);
      }
    }
  }
}

}  // namespace
}  // namespace troupe
