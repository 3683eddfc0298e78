// data.sample: the text of a validation is what the checkpoint of the same step
// continues the prompt with, and training is what it is without.
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "proto/plan/ranks_needed.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/tier/allocator.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/text_plan_of.h"
#include "worker/engine/text_generation.h"

namespace troupe {
namespace {

constexpr char kPrompt[] = "0123";  // bytes that are in the vocabulary

JobSpec Sampling(JobSpec job, double temperature) {
  SampleSpec& sample = *job.mutable_data()->mutable_sample();
  sample.set_prompt(kPrompt);
  sample.set_tokens(12);
  sample.set_temperature(temperature);
  sample.set_seed(5);
  return job;
}

std::string Continue(const std::string& checkpoint, double temperature) {
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  TierBudget budget;
  budget.set_tier(DEVICE);
  budget.set_bytes(int64_t{1} << 28);
  HostAllocator allocator;
  const TierArenas arenas({budget}, allocator);
  std::string text;
  const absl::Status status =
      ContinueText({.checkpoint = checkpoint,
                    .plan = TextPlanOf(checkpoint),
                    .prompt = kPrompt,
                    .max_new_tokens = 12,
                    .sampling = {.temperature = temperature, .seed = 5}},
                   *device, arenas, [&](const TextPiece& piece) {
                     text += piece.text;
                     return absl::OkStatus();
                   });
  EXPECT_TRUE(status.ok()) << status;
  return text;
}

JobSpec Changed(const std::string& how) {
  const bool llama = how == "llama" || how == "sequence_parallel" ||
                     how == "adapters in pieces";
  const bool modules = how == "modules" || how == "modules apart";
  JobSpec job = WithFewSteps(SmallJobOf(how == "experts" ? "mixtral"
                                        : modules ? "deepseek_v3 with modules"
                                        : llama   ? "llama"
                                                  : "gpt2"));
  job.mutable_training()->set_micro_batch_size(2);
  if (how == "slices") {
    job.mutable_parallelism()->set_data(2);
    job.mutable_parallelism()->set_zero(2);
  } else if (how == "groups") {  // parameters lie in another order
    OptimizerGroup& group = *job.mutable_optimizer()->add_groups();
    group.add_match("*.mlp.c_fc.*");
    group.set_name("lion");
  } else if (how == "matrices") {
    job.mutable_parallelism()->set_data(2);
    job.mutable_parallelism()->set_zero(1);
    OptimizerGroup& group = *job.mutable_optimizer()->add_groups();
    group.add_match("*.mlp.*");
    group.set_name("adafactor");
  } else if (how == "servers") {  // rank 0 is a replica
    job.mutable_parallelism()->set_data(2);
    job.mutable_parallelism()->set_servers(1);
  } else if (how == "versions") {  // after odd steps the second is the newest
    job.mutable_parallelism()->set_pipeline_schedule("pipedream_2bw");
    job.mutable_training()->set_validate_every(3);
  } else if (how == "pipeline") {
    job.mutable_parallelism()->set_pipeline(2);
  } else if (how == "interleaved") {  // a rank has two runs of units
    job.mutable_parallelism()->set_pipeline(2);
    job.mutable_parallelism()->set_virtual_stages(2);
    job.mutable_parallelism()->set_pipeline_schedule("interleaved_1f1b");
  } else if (how == "zb_v") {  // whose runs touch on the last rank
    job.mutable_parallelism()->set_pipeline(2);
    job.mutable_parallelism()->set_pipeline_schedule("zb_v");
  } else if (how == "chimera") {  // stages lie twice
    job.mutable_parallelism()->set_pipeline(2);
    job.mutable_parallelism()->set_pipeline_schedule("chimera");
  } else if (how == "servers of stages") {
    job.mutable_parallelism()->set_pipeline(2);
    job.mutable_parallelism()->set_servers(1);
  } else if (how == "modules apart") {  // a rank has units of no text alone
    job.mutable_parallelism()->set_pipeline(2);
    job.mutable_parallelism()->add_stages(job.model().num_hidden_layers() + 2);
    job.mutable_parallelism()->add_stages(2);
  } else if (how == "tensor" || how == "sequence_parallel") {
    job.mutable_parallelism()->set_tensor(how == "tensor" ? 3 : 2);
    job.mutable_parallelism()->set_sequence_parallel(how != "tensor");
    if (how != "tensor") job.mutable_training()->set_sequence_length(16);
  } else if (how == "zero 3" || how == "kept") {
    job.mutable_parallelism()->set_data(2);
    job.mutable_parallelism()->set_zero(3);
    job.mutable_parallelism()->set_reshard_after_forward(how != "kept");
  } else if (how == "cube") {
    job.mutable_parallelism()->set_pipeline(2);
    job.mutable_parallelism()->set_data(2);
    job.mutable_parallelism()->set_tensor(3);
    job.mutable_parallelism()->set_zero(3);
  } else if (how == "ring") {
    job.mutable_training()->set_sequence_length(16);
    job.mutable_parallelism()->set_context(2);
    job.mutable_parallelism()->set_context_method("ring");
    job.mutable_parallelism()->set_zero(3);
  } else if (how == "batch") {
    job.mutable_parallelism()->set_batch(2);
  } else if (how == "host") {
    job.mutable_memory()->set_parameters("host");
    job.mutable_memory()->set_optimizer("host");
    job.mutable_memory()->set_gradients("host");
    job.mutable_memory()->set_activations("host");
  } else if (how == "slices on the host") {
    job.mutable_parallelism()->set_data(2);
    job.mutable_parallelism()->set_zero(2);
    job.mutable_memory()->set_parameters("host");
    job.mutable_memory()->set_optimizer("host");
  } else if (how == "all slices on nvme") {
    job.mutable_parallelism()->set_data(2);
    job.mutable_parallelism()->set_zero(3);
    job.mutable_memory()->set_parameters("nvme");
    job.mutable_memory()->set_optimizer("nvme");
    job.mutable_memory()->set_gradients("host");
  } else if (how == "adapters in pieces") {
    job.mutable_training()->mutable_lora()->set_rank(2);
    job.mutable_parallelism()->set_tensor(2);
    job.mutable_parallelism()->set_data(2);
    job.mutable_parallelism()->set_zero(3);
  } else if (how == "adapters") {
    job.mutable_training()->mutable_lora()->set_rank(2);
  } else if (how == "frozen") {
    job.mutable_training()->add_freeze("*.h.0.*");
  }
  return job;
}

TEST(ValidationSample, IsTheTextOfTheCheckpoint) {
  for (const char* const how : {"alone",
                                "slices",
                                "groups",
                                "matrices",
                                "servers",
                                "versions",
                                "adapters",
                                "frozen",
                                "llama",
                                "experts",
                                "modules",
                                "pipeline",
                                "interleaved",
                                "zb_v",
                                "chimera",
                                "servers of stages",
                                "modules apart",
                                "tensor",
                                "sequence_parallel",
                                "zero 3",
                                "kept",
                                "cube",
                                "ring",
                                "batch",
                                "host",
                                "slices on the host",
                                "all slices on nvme",
                                "adapters in pieces"}) {
    for (const double temperature : {0.0, 0.8}) {
      if (temperature == 0 && how != std::string("alone")) continue;
      SCOPED_TRACE(absl::StrCat(how, " ", temperature));
      JobSpec job = Sampling(Changed(how), temperature);
      const std::string directory =
          absl::StrCat(testing::TempDir(), "/validation_sample");
      std::filesystem::remove_all(directory);
      job.mutable_checkpoint()->set_directory(directory);
      job.mutable_checkpoint()->set_every(job.training().validate_every());
      const TrainingRun run = Train(job, {.ranks = RanksNeeded(job)});
      ASSERT_TRUE(run.status().ok()) << run.status();
      for (const StepRecord& step : run.steps[0]) {
        ASSERT_EQ(step.has_sample(), step.has_validation_loss());
        if (!step.has_sample()) continue;
        EXPECT_EQ(step.sample().prompt(), kPrompt);
        EXPECT_EQ(step.sample().error(), "");
        EXPECT_EQ(step.sample().text(),
                  Continue(CheckpointPath(directory, step.step()), temperature))
            << "step " << step.step();
      }
      for (size_t rank = 1; rank < run.steps.size(); ++rank) {
        EXPECT_FALSE(run.steps[rank].back().has_sample());
      }
    }
  }
}

TEST(ValidationSample, LeavesTrainingAsItIs) {
  for (const char* const precision : {"f32", "bf16"}) {
    JobSpec job = SmallJob();
    job.mutable_training()->set_precision(precision);
    const TrainingRun without = Train(job, {});
    const TrainingRun with = Train(Sampling(job, 0.8), {});
    ASSERT_TRUE(with.status().ok()) << with.status();
    ASSERT_EQ(with.steps[0].size(), without.steps[0].size());
    for (size_t i = 0; i < with.steps[0].size(); ++i) {
      EXPECT_EQ(with.steps[0][i].loss(), without.steps[0][i].loss());
    }
    EXPECT_NE(with.steps[0].back().sample().text(), "");
    EXPECT_EQ(with.bytes_left, 0u);
  }
}

// Others would wait for it in vain, and the job would fail.
TEST(ValidationSample, SaysThatItTakesTooLong) {
  const JobSpec job = Sampling(SmallJob(), 0.8);
  const TrainingRun run =
      Train(job, {.collective_timeout = absl::ZeroDuration()});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const TextSample& sample = run.steps[0].back().sample();
  EXPECT_EQ(sample.text(), "");
  EXPECT_EQ(sample.error(),
            "it takes more than 0, for which training waits; set a smaller "
            "data.sample.tokens");
}

TEST(ValidationSample, IsRefused) {
  struct Case {
    void (*change)(JobSpec& job);
    const char* message;
  };
  const Case cases[] = {
      {[](JobSpec& j) {
         j.mutable_parallelism()->set_tensor(4);
         j.mutable_parallelism()->set_tensor_method("2d");
       },
       "data.sample: does not go with parallelism.tensor_method: 2d: ranks "
       "write a text with units that are cut in one dimension"},
      {[](JobSpec& j) {
         j = Sampling(SmallJobOf("mixtral"), 0.8);
         j.mutable_training()->set_micro_batch_size(2);
         j.mutable_parallelism()->set_data(2);
         j.mutable_parallelism()->set_expert(2);
       },
       "does not go with parallelism.expert: ranks write"},
      {[](JobSpec& j) {
         j.mutable_parallelism()->set_tensor(2);
         StrategySpec& other = *j.mutable_parallelism()->add_strategies();
         other.add_units("embedding");
         other.set_batch(2);
       },
       "does not go with parallelism.strategies"},
      {[](JobSpec& j) { j.mutable_training()->set_precision("fp16"); },
       "training.precision is fp16"},
      {[](JobSpec& j) {
         j.mutable_data()->clear_validation_fraction();
         j.mutable_training()->clear_validate_every();
       },
       "nothing is validated"},
      {[](JobSpec& j) { j.mutable_training()->clear_validate_every(); },
       "nothing is validated; set training.validate_every"},
      {[](JobSpec& j) { j.mutable_data()->mutable_sample()->clear_prompt(); },
       "data.sample.prompt: is missing"},
      {[](JobSpec& j) { j.mutable_data()->mutable_sample()->set_tokens(20); },
       "data.sample.tokens: 20 leave no room for a prompt"},
      {[](JobSpec& j) {
         j.mutable_data()->mutable_sample()->set_temperature(-1);
       },
       "data.sample.temperature: -1 is out of range"},
  };
  for (const Case& c : cases) {
    JobSpec job = Sampling(SmallJob(), 0.8);
    job.mutable_training()->set_micro_batch_size(2);
    c.change(job);
    const absl::Status status = CompileForThreads(job, 4).status();
    EXPECT_TRUE(absl::StrContains(status.message(), c.message)) << status;
  }
}

}  // namespace
}  // namespace troupe
