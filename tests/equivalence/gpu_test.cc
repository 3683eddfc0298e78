// A GPU trains the model that the CPU trains: in f32 the losses of 20 steps
// agree to 1e-4, in bf16 and fp16 to what these round. And ranks that share the
// GPU, whose collectives are staged through the host, train what one rank on it
// does: replicas, stages, pieces of units and of what rests. Skips where there
// is no GPU.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/cuda/device.h"
#include "proto/base/check.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

// Of losses: on the way to one a number is rounded a few times, in bf16 to 8
// bits, in fp16 to 11.
const std::map<std::string, double> kDifferences = {
    {"f32", 1e-4}, {"bf16", 2e-2}, {"fp16", 2e-3}};

std::unique_ptr<Device> NewGpu() {
  absl::StatusOr<std::unique_ptr<Device>> device = NewCudaDevice({});
  CHECK(device.ok()) << device.status().ToString();
  return *std::move(device);
}

// Architecture, precision.
using Cut = std::tuple<std::string, std::string>;

class GpuTest : public testing::TestWithParam<Cut> {
 protected:
  void SetUp() override {
    const auto device = NewCudaDevice({});
    if (!device.ok()) GTEST_SKIP() << "no CUDA device: " << device.status();
  }

  static JobSpec Job() {
    JobSpec job =
        std::get<0>(GetParam()) == "gpt2" ? SmallJob() : SmallLlamaJob();
    job.mutable_training()->set_precision(std::get<1>(GetParam()));
    job.mutable_training()->set_dropout(0.1);
    return job;
  }
  static double Difference() {
    return kDifferences.at(std::get<1>(GetParam()));
  }

  static void ExpectSameLosses(const TrainingRun& run,
                               const TrainingRun& reference) {
    ASSERT_TRUE(run.status().ok()) << run.status();
    ASSERT_TRUE(reference.status().ok()) << reference.status();
    ASSERT_EQ(reference.steps[0].size(), 20u);
    double largest = 0;
    for (size_t rank = 0; rank < run.steps.size(); ++rank) {
      ASSERT_EQ(run.steps[rank].size(), reference.steps[0].size());
      for (size_t i = 0; i < run.steps[rank].size(); ++i) {
        const double difference =
            std::abs(run.steps[rank][i].loss() - reference.steps[0][i].loss());
        EXPECT_LE(difference, Difference()) << "step " << i;
        largest = std::max(largest, difference);
      }
    }
    RecordProperty("largest_difference", absl::StrCat(largest));
    EXPECT_EQ(run.bytes_left, 0u);
  }
};

TEST_P(GpuTest, TrainsAsTheCpuDoes) {
  ExpectSameLosses(Train(Job(), {.new_device = NewGpu}), Train(Job(), {}));
}

// The next step is with the GPU before this one has ended; to the bit.
TEST_P(GpuTest, StepsThatDoNotDrainAreThoseThatDo) {
  JobSpec job = Job();
  if (job.training().precision() == "fp16") GTEST_SKIP() << "fp16 drains";
  for (const double clipping : {1.0, 0.0}) {
    job.mutable_training()->set_gradient_clipping(clipping);
    const TrainingRun drained = Train(
        job, {.trace_every = 0, .reads_late = false, .new_device = NewGpu});
    const TrainingRun run =
        Train(job, {.trace_every = 0, .new_device = NewGpu});
    ExpectSameLosses(run, drained);
    ASSERT_EQ(run.steps[0].size(), drained.steps[0].size());
    for (size_t i = 0; i < run.steps[0].size(); ++i) {
      EXPECT_EQ(run.steps[0][i].loss(), drained.steps[0][i].loss()) << i;
      EXPECT_EQ(run.steps[0][i].grad_norm(), drained.steps[0][i].grad_norm())
          << i;
    }
  }
}

TEST_P(GpuTest, KeepsGradientsInTheTypeOfTheParameters) {
  JobSpec job = Job();
  job.mutable_training()->set_gradient_precision("parameters");
  ExpectSameLosses(Train(job, {.new_device = NewGpu}), Train(job, {}));
}

// Attention in bf16 and fp16 is then cuDNN's, where there is one: of heads
// whose width it takes.
TEST_P(GpuTest, TrainsAsTheCpuDoesWithoutDropout) {
  JobSpec job = Job();
  job.mutable_training()->set_dropout(0);
  if (job.model().has_head_dim()) job.mutable_model()->set_head_dim(16);
  ExpectSameLosses(Train(job, {.new_device = NewGpu}), Train(job, {}));
}

// Whole units, biases, and one of the two parameters of norms.
TEST_P(GpuTest, LeavesOutFrozenParametersAsTheCpuDoes) {
  JobSpec job = Job();
  const bool is_gpt2 = std::get<0>(GetParam()) == "gpt2";
  for (const char* const pattern :
       {"*.0.*", is_gpt2 ? "*.ln_1.weight" : "*input_layernorm.weight",
        is_gpt2 ? "*.ln_2.bias" : "*.mlp.*"}) {
    job.mutable_training()->add_freeze(pattern);
    ExpectSameLosses(Train(job, {.new_device = NewGpu}), Train(job, {}));
  }
}

TEST_P(GpuTest, RanksThatShareItTrainAsOne) {
  JobSpec job = Job();
  const TrainingRun reference = Train(job, {.new_device = NewGpu});
  job.mutable_training()->set_micro_batch_size(2);
  for (const int ranks : {2, 4}) {
    job.mutable_parallelism()->set_data(ranks);
    for (const char* const backend : {"shared_memory", "gloo"}) {
      ExpectSameLosses(Train(job, {.ranks = ranks,
                                   .backend = backend,
                                   .trace_every = 0,
                                   .new_device = NewGpu}),
                       reference);
    }
  }
}

TEST_P(GpuTest, PipelinesThatShareItTrainAsOne) {
  JobSpec job = Job();
  job.mutable_training()->set_gradient_clipping(0);
  const TrainingRun reference = Train(job, {.new_device = NewGpu});
  job.mutable_training()->set_micro_batch_size(2);
  for (const char* const schedule : {"1f1b", "chimera", "zb_h2"}) {
    const PipelineCut cut = {.schedule = schedule};
    ExpectSameLosses(Train(CutJob(job, cut), {.ranks = cut.ranks(),
                                              .backend = "shared_memory",
                                              .trace_every = 0,
                                              .new_device = NewGpu}),
                     reference);
  }
}

// Cuts inside units, and of what rests.
TEST_P(GpuTest, PiecesThatShareItTrainAsOne) {
  JobSpec job = TensorJob({.architecture = std::get<0>(GetParam())});
  job.mutable_training()->set_precision(std::get<1>(GetParam()));
  const TrainingRun reference = Train(job, {.new_device = NewGpu});
  for (const JobCut& cut :
       {JobCut{.tensor = 2}, JobCut{.tensor = 2, .sequence = true},
        JobCut{.data = 2, .zero = 3}}) {
    ExpectSameLosses(Train(CutJob(job, cut), {.ranks = cut.ranks(),
                                              .backend = "shared_memory",
                                              .trace_every = 0,
                                              .new_device = NewGpu}),
                     reference);
  }
}

// Its states in page-locked memory, its arithmetic the CPU's.
TEST_P(GpuTest, AnOptimizerOnTheHostTrainsAsOneOnIt) {
  JobSpec job = Job();
  const TrainingRun reference = Train(job, {.new_device = NewGpu});
  job.mutable_memory()->set_optimizer("host");
  const TrainingRun run = Train(job, {.new_device = NewGpu});
  ExpectSameLosses(run, reference);
  for (const StepRecord& step : run.steps[0]) EXPECT_EQ(step.tiers_size(), 1);
}

INSTANTIATE_TEST_SUITE_P(Models, GpuTest,
                         testing::Combine(testing::Values("gpt2", "llama"),
                                          testing::Values("f32", "bf16",
                                                          "fp16")),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param), "_",
                                               std::get<1>(info.param));
                         });

}  // namespace
}  // namespace troupe
