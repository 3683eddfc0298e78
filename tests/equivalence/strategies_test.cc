// The promise, where ranks do not share all units in one way: whatever a factor
// of the ranks does for a unit, they train the model that a single rank trains,
// and send what the plan predicts.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/ranks_needed.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/state_difference.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);

// The job as these fields share it, in protobuf's text form.
JobSpec SharedJob(JobSpec job, const std::string& parallelism,
                  const std::string& memory = "") {
  ParallelismSpec added;
  CHECK(google::protobuf::TextFormat::ParseFromString(parallelism, &added));
  job.mutable_parallelism()->MergeFrom(added);
  MemorySpec tiers;
  CHECK(google::protobuf::TextFormat::ParseFromString(memory, &tiers));
  job.mutable_memory()->MergeFrom(tiers);
  return job;
}

struct Case {
  std::string name;
  std::string parallelism;
  TensorModel model = {};
  std::string memory = "";
};

// Two stages, each of two ranks for each of its replicas.
const std::string kTensorThenBatch =
    "pipeline: 2 strategies { stage: 0 tensor: 2 } "
    "strategies { stage: 1 batch: 2 } ";
const std::string kBatchThenTensor =
    "pipeline: 2 strategies { stage: 0 batch: 2 } "
    "strategies { stage: 1 tensor: 2 } ";
// One group of ranks.
const std::string kBlocksInBatch =
    "tensor: 2 strategies { units: 'blocks' batch: 2 } ";
const std::string kEndsInBatch =
    "tensor: 2 strategies { units: 'embedding' units: 'head' batch: 2 } ";
// Stages and units of one.
const std::string kBatchButHead =
    "pipeline: 2 batch: 2 strategies { stage: 1 tensor: 2 } "
    "strategies { units: '2' batch: 2 } ";

const TensorModel kTied = {.dropout = 0.1};
const TensorModel kUntied = {.tied = false, .dropout = 0.1};
const TensorModel kLlama = {.architecture = "llama", .tied = false};
const TensorModel kFour = {.tied = false, .dropout = 0.1, .micro_batch = 4};

std::vector<Case> Cases() {
  std::vector<Case> cases = {
      {"batch", "batch: 2", kTied},
      {"batch_tensor", "batch: 2 tensor: 2", kTied},
      {"batch_sequence", "batch: 2 tensor: 2 sequence_parallel: true"},
      {"batch_context", "batch: 2 context: 2 data: 2"},
      {"batch_ring", "batch: 2 context: 2 context_method: 'ring'"},
      {"batch_zero_1", "batch: 2 data: 2 zero: 1"},
      {"batch_zero_2_of_2", "batch: 2 data: 2 zero: 2 zero_size: 2"},
      {"batch_zero_3", "batch: 2 data: 2 zero: 3"},
      {"batch_zero_3_of_context", "batch: 2 context: 2 zero: 3 zero_size: 2"},
      {"batch_pipeline", "batch: 2 pipeline: 2", kTied},

      {"tensor_then_batch", kTensorThenBatch, kUntied},
      {"batch_then_tensor", kBatchThenTensor, kUntied},
      {"tensor_then_batch_llama", kTensorThenBatch, kLlama},
      {"batch_then_tensor_llama", kBatchThenTensor, kLlama},
      {"batch_but_head", kBatchButHead, kUntied},
      {"blocks_in_batch", kBlocksInBatch, kTied},
      {"blocks_in_batch_llama", kBlocksInBatch, kLlama},
      {"ends_in_batch", kEndsInBatch, kTied},
      {"ends_in_batch_untied", kEndsInBatch, kLlama},

      {"sequence_then_batch",
       "pipeline: 2 strategies { stage: 0 tensor: 2 sequence_parallel: true } "
       "strategies { stage: 1 batch: 2 } ",
       kUntied},
      {"batch_then_sequence",
       "pipeline: 2 strategies { stage: 0 batch: 2 } "
       "strategies { stage: 1 tensor: 2 sequence_parallel: true } ",
       kLlama},
      {"blocks_in_batch_sequence",
       "tensor: 2 sequence_parallel: true "
       "strategies { units: 'blocks' batch: 2 } zero: 3",
       kTied},

      {"four_ranks",
       "pipeline: 2 strategies { stage: 0 tensor: 4 } "
       "strategies { stage: 1 batch: 4 } ",
       kFour},
      {"batch_over_two_axes",
       "batch: 2 tensor: 2 strategies { units: 'blocks' batch: 4 }", kFour},
      {"batch_over_two_axes_sequence",
       "batch: 2 tensor: 2 sequence_parallel: true "
       "strategies { units: 'embedding' units: 'head' batch: 4 }",
       kFour},
      {"batch_over_two_axes_stages",
       "pipeline: 2 batch: 2 tensor: 2 strategies { stage: 1 batch: 4 } "
       "zero: 3 zero_size: 2",
       kFour},
      // The embedding and the block behind it are summed over the same ranks,
      // and only the block rests in slices.
      {"slices_beside_whole_units",
       "pipeline: 2 pipeline_schedule: 'chimera' batch: 2 zero: 2 "
       "strategies { units: 'embedding' units: 'head' tensor: 2 }",
       kLlama},
      {"uneven_replicas",
       kTensorThenBatch + "data: 2 micro_batches: 3 micro_batches: 1", kUntied},
  };
  for (const char* const schedule :
       {"gpipe", "interleaved_1f1b", "chimera", "zb_h1", "zb_v"}) {
    cases.push_back(
        {absl::StrCat("schedule_", schedule),
         absl::StrCat(kTensorThenBatch, "pipeline_schedule: '", schedule, "'"),
         kUntied});
  }
  for (const int zero : {1, 2, 3}) {
    const std::string with = absl::StrCat("data: 2 zero: ", zero);
    cases.push_back({absl::StrCat("stages_zero_", zero),
                     absl::StrCat(kTensorThenBatch, with), kUntied});
    cases.push_back({absl::StrCat("units_zero_", zero),
                     absl::StrCat(kBlocksInBatch, with), kTied});
    cases.push_back({absl::StrCat("stages_zero_within_", zero),
                     absl::StrCat(kBatchThenTensor, "zero: ", zero), kUntied});
  }
  const std::string memories[] = {"recompute { mode: 'full' }",
                                  "recompute { mode: 'selective' }",
                                  "optimizer: 'host' gradients: 'host'",
                                  "parameters: 'host' activations: 'host'"};
  for (const std::string& memory : memories) {
    const std::string name = absl::StrCat("memory_", &memory - memories);
    cases.push_back(
        {absl::StrCat(name, "_stages"), kTensorThenBatch, kUntied, memory});
    cases.push_back(
        {absl::StrCat(name, "_units"), kBlocksInBatch, kTied, memory});
  }
  return cases;
}

// Of all ranks.
int64_t BytesSentInAStep(const TrainingRun& run) {
  int64_t bytes = 0;
  for (const std::vector<uint64_t>& of_rank : run.sent_bytes) {
    if (of_rank.size() > 2)
      bytes += static_cast<int64_t>(of_rank[2] - of_rank[1]);
  }
  return bytes;
}

int64_t BytesPredicted(const Plan& plan) {
  int64_t bytes = 0;
  for (const RankPrediction& rank : plan.prediction().ranks()) {
    bytes += rank.bytes_sent_per_step();
  }
  return bytes;
}

class Strategies : public testing::TestWithParam<Case> {};

TEST_P(Strategies, TrainTheSameModel) {
  const Case& c = GetParam();
  JobSpec job = WithFewSteps(TensorJob(c.model));
  job.mutable_training()->set_gradient_clipping(0.5);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  const JobSpec shared = SharedJob(job, c.parallelism, c.memory);
  const TrainingRun run = Train(shared, {.ranks = RanksNeeded(shared)});
  ExpectSameTraining(run, reference, kTolerance);
  EXPECT_EQ(BytesSentInAStep(run), BytesPredicted(run.plan));
}

// Plans with strategies and plain ones go on with what the other began.
TEST(StrategiesResume, FromAnyPlanToAnyOther) {
  JobSpec job = WithFewSteps(TensorJob(kUntied));
  job.mutable_training()->set_validate_every(0);
  const std::string pieces[] = {
      kTensorThenBatch + "data: 2 zero: 2",
      "data: 2",
      kBatchThenTensor + "zero: 3",
      "tensor: 2",
      "tensor: 2 strategies { units: 'blocks' batch: 2 } zero: 1",
      "",
      kTensorThenBatch,
      "batch: 2"};
  std::vector<JobSpec> plans;
  for (const std::string& piece : pieces) {
    plans.push_back(SharedJob(job, piece));
  }
  ExpectResumesThrough(plans, OneRank(job), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(InProcess, Strategies, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe
