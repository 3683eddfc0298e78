// Multi-token prediction: modules behind the head, which read its projection's
// input and a second output of the embedding, train as on a single rank however
// the job is cut. And a job goes on without them.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/experts_job.h"
#include "tests/equivalence/reference_runs.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

// Two layers and two modules: units 0 to 5, of which 3 is the head.
JobSpec ModulesJob(bool tied = false) {
  JobSpec job = WithFewSteps(TensorJob({.architecture = "deepseek_v3",
                                        .tied = tied,
                                        .positions = 24,
                                        .micro_batch = 1}));
  job.mutable_training()->set_gradient_clipping(0.5);
  ModelSpec& model = *job.mutable_model();
  model.set_num_nextn_predict_layers(2);
  model.set_mtp_coefficient(0.5);
  model.mutable_experts()->set_balance("bias");
  model.mutable_experts()->set_bias_rate(0.02);
  model.mutable_experts()->set_balance_coefficient(0.2);
  return job;
}

struct ModulesCase {
  std::string name;
  std::string parallelism;
  std::string memory = "";
  std::string training = "";
  bool tied = false;
};

std::vector<ModulesCase> ModulesCases() {
  const std::string two = "data: 2 pipeline: 2 ";
  std::vector<ModulesCase> cases = {
      {"data", "data: 4"},
      {"expert", "data: 2 expert: 2"},
      {"expert_rounds", "data: 2 expert: 2 expert_slack: 1"},
      {"tensor", "tensor: 2"},
      {"tensor_tied", "tensor: 2", "", "", true},
      {"sequence", "data: 2 expert: 2 tensor: 2 sequence_parallel: true"},
      {"folded", "tensor: 2 sequence_parallel: true expert: 2"},
      {"ulysses", "context: 2 expert: 2"},
      {"rows_of_scores", "context: 4 context_method: 'ring_self_attention'"},
      {"larger_micro_batches", "data: 2", "", "micro_batch_size: 2"},
      {"batch", "batch: 2", "", "micro_batch_size: 2"},
      {"recompute", "data: 2", "recompute { mode: 'full' }"},
      {"recompute_some", "tensor: 2", "recompute { mode: 'selective' }"},
      {"tiers", "data: 2 zero: 2", "parameters: 'host' activations: 'host'"},
      {"loss_in_chunks", "tensor: 2", "loss_chunk_tokens: 10"},
      {"loss_in_chunks_tied", "data: 2 pipeline: 2",
       "loss_chunk_tokens: 7 recompute { mode: 'full' }", "", true},
      {"dropout", "tensor: 2", "", "dropout: 0.1"},
      {"frozen_tables", "data: 2 pipeline: 2", "",
       "freeze: '*embed_tokens*' freeze: 'lm_head*'"},
      {"stages_apart", "pipeline: 4"},
      {"stages_apart_tied", "pipeline: 4", "", "", true},
      {"head_before_modules", "pipeline: 3 stages: [1, 3, 2] zero: 0"},
      {"all_at_once", two + "expert: 2 zero: 3 tensor: 2",
       "recompute { mode: 'full' } optimizer: 'host'"},
  };
  for (const Pipeline& pipeline : Pipelines()) {
    if (pipeline.asynchronous) continue;
    cases.push_back(
        {absl::StrCat("schedule_", pipeline.name),
         absl::StrCat("pipeline: 2 pipeline_schedule: '", pipeline.name, "'")});
  }
  for (const int zero : {1, 2, 3}) {
    cases.push_back({absl::StrCat("zero_", zero),
                     absl::StrCat("data: 4 expert: 2 zero: ", zero)});
    cases.push_back({absl::StrCat("zero_", zero, "_tied"),
                     absl::StrCat(two, "zero: ", zero), "", "", true});
  }
  return cases;
}

class Modules : public testing::TestWithParam<ModulesCase> {};

TEST_P(Modules, TrainTheSameModel) {
  const ModulesCase& c = GetParam();
  JobSpec job = ModulesJob(c.tied);
  Merge(c.training, *job.mutable_training());
  JobSpec cut = job;
  Merge(c.parallelism, *cut.mutable_parallelism());
  Merge(c.memory, *cut.mutable_memory());
  ExpectSame({{cut, job.training().steps()}}, job);
}

INSTANTIATE_TEST_SUITE_P(InProcess, Modules, testing::ValuesIn(ModulesCases()),
                         [](const auto& info) { return info.param.name; });

TEST(ModulesOfAJob, AreTrained) {
  const TrainingRun& run = OneRank(ModulesJob());
  ASSERT_TRUE(run.status().ok()) << run.status();
  const std::vector<StepRecord>& steps = run.steps[0];
  EXPECT_GT(steps.front().mtp_loss(), 0.3 * steps.front().loss());
  EXPECT_LT(steps.back().mtp_loss(), steps.front().mtp_loss());
}

TEST(ModulesOfAJob, AreLeftOutByOneThatGoesOnWithoutThem) {
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/modules_left_out");
  std::filesystem::remove_all(directory);
  JobSpec job = ModulesJob();
  job.mutable_checkpoint()->set_directory(directory);
  job.mutable_training()->set_stop_after(2);
  const TrainingRun first = Train(job, {});
  ASSERT_TRUE(first.status().ok()) << first.status();
  job.mutable_training()->clear_stop_after();
  job.mutable_checkpoint()->clear_directory();
  job.mutable_model()->clear_num_nextn_predict_layers();
  job.mutable_model()->clear_mtp_coefficient();
  const TrainingRun without =
      Train(job, {.resume = first.checkpoints.back().path()});
  ASSERT_TRUE(without.status().ok()) << without.status();
  EXPECT_EQ(without.steps[0].front().mtp_loss(), 0);
  // What the model itself has learned is there.
  EXPECT_LT(without.steps[0].front().loss(), first.steps[0].front().loss());
}

TEST(ModulesOfAJob, AreRefusedWhereTheyCannotBe) {
  struct Refusal {
    void (*change)(JobSpec& job);
    const char* message;
  };
  const Refusal refusals[] = {
      {[](JobSpec& j) {
         j.mutable_model()->mutable_experts()->set_balance("none");
         j.mutable_model()->mutable_experts()->clear_bias_rate();
         j.mutable_model()->mutable_experts()->clear_balance_coefficient();
         j.mutable_training()->set_gradient_clipping(0);
         j.mutable_parallelism()->set_pipeline(2);
         j.mutable_parallelism()->set_pipeline_schedule("pipedream_2bw");
       },
       "parallelism.pipeline_schedule: stages of pipedream_2bw use weights of "
       "different ages"},
      {[](JobSpec& j) { j.mutable_model()->set_num_nextn_predict_layers(8); },
       "model.num_nextn_predict_layers: 8 is out of range"},
      {[](JobSpec& j) { j.mutable_model()->set_num_nextn_predict_layers(0); },
       "model.mtp_coefficient: is of modules that predict further tokens"},
      {[](JobSpec& j) { j.mutable_model()->set_mtp_coefficient(0); },
       "model.mtp_coefficient: 0 is out of range"},
      {[](JobSpec& j) { j.mutable_training()->mutable_lora()->set_rank(2); },
       "training.lora: "},
      {[](JobSpec& j) {
         j.mutable_training()->set_micro_batch_size(2);
         Merge("tensor: 2 strategies { units: 'head' batch: 2 }",
               *j.mutable_parallelism());
       },
       "parallelism.strategies: unit 4 uses lm_head.weight of unit 3"},
  };
  for (const Refusal& refusal : refusals) {
    JobSpec job = ModulesJob();
    refusal.change(job);
    const absl::Status status = CompileForThreads(job, 2).status();
    EXPECT_TRUE(absl::StrContains(status.message(), refusal.message)) << status;
  }
}

}  // namespace
}  // namespace troupe
