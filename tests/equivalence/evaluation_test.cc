// A job that only evaluates measures the loss that training's validation and
// transformers find for the same weights and windows, whatever its plan, and
// has no memory for what training needs.
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/memory.h"
#include "scheduler/pipelines/pipelines.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/published_window.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

constexpr int kWindows = 21;  // the batches below do not divide it
constexpr int kBatch = 8;

// Of a file, `count` tokens, which follow each other as those of the small job
// do, and are documents of all lengths up to `longest`.
std::string WriteTokens(const std::string& name, int count, int longest) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = 61, .tokenizer = "bytes"});
  EXPECT_TRUE(writer.ok()) << writer.status();
  int32_t token = 7;
  int ends = 0;
  for (int i = 0; i < count; ++i) {
    EXPECT_TRUE((*writer)->Append({token}).ok());
    token = (token * 3 + 1 + (i * (i % 13) / 7) % 3) % 61;
    if (i < ends && i + 1 < count) continue;
    EXPECT_TRUE((*writer)->EndDocument().ok());
    ends = i + 1 + (i * 7) % longest;
  }
  EXPECT_TRUE((*writer)->Finish().ok());
  return path;
}

// kWindows windows of the length, and some tokens more.
std::string ValidationTokens(int length) {
  return WriteTokens(absl::StrCat("evaluated", length, ".tokens"),
                     kWindows * length + 1 + length / 2, 2 * length);
}

struct Trained {
  JobSpec job;
  std::string checkpoint;
  double validation_loss = 0;  // with the weights that are in it
};

// Trains the job, with its validation on all of the file.
Trained TrainAndSave(const std::string& name, JobSpec job) {
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/evaluation_", name);
  std::filesystem::remove_all(directory);
  DataSpec& data = *job.mutable_data();
  data.clear_validation_fraction();
  data.set_validation(ValidationTokens(job.training().sequence_length()));
  job.mutable_training()->set_validation_sequences(kWindows + 3);
  job.mutable_checkpoint()->set_directory(directory);
  const TrainingRun run = Train(job, {});
  EXPECT_TRUE(run.status().ok()) << run.status();
  EXPECT_LT(run.steps[0].back().validation_loss(), std::log(61) - 0.2);
  return {.job = job,
          .checkpoint = run.checkpoints.back().path(),
          .validation_loss = run.steps[0].back().validation_loss()};
}

JobSpec EvaluationOf(const Trained& trained) {
  JobSpec job;
  job.set_name("evaluation");
  job.set_evaluate(true);
  *job.mutable_model() = trained.job.model();
  DataSpec& data = *job.mutable_data();
  data.set_validation(trained.job.data().validation());
  data.set_isolate_documents(trained.job.data().isolate_documents());
  const TrainingSpec& before = trained.job.training();
  TrainingSpec& training = *job.mutable_training();
  training.set_steps((kWindows + kBatch - 1) / kBatch);
  training.set_global_batch_size(kBatch);
  training.set_micro_batch_size(2);
  training.set_sequence_length(before.sequence_length());
  if (before.has_precision()) training.set_precision(before.precision());
  job.mutable_checkpoint()->set_resume(trained.checkpoint);
  job.mutable_parallelism()->set_data(1);
  return job;
}

TrainingRun Evaluate(const Trained& trained, const JobSpec& job,
                     int ranks = 1) {
  return Train(job, {.ranks = ranks, .resume = trained.checkpoint});
}

void ExpectLoss(const TrainingRun& run, double loss, double relative_error) {
  ASSERT_TRUE(run.status().ok()) << run.status();
  for (const std::vector<StepRecord>& steps : run.steps) {
    ASSERT_EQ(steps.size(), (kWindows + kBatch - 1) / kBatch);
    EXPECT_NEAR(steps.back().loss() / loss, 1, relative_error);
  }
  EXPECT_EQ(run.bytes_left, 0u);
}

// Weights are bitwise the checkpoint's, and each target's loss is an f32; sums
// are taken in another order.
constexpr double kSameWeights = 1e-7;

TEST(Evaluation, IsTheValidationLossOfTraining) {
  for (const char* const architecture :
       {"gpt2", "llama", "gpt_neox", "mixtral", "deepseek_v3",
        "deepseek_v3 with modules"}) {
    SCOPED_TRACE(architecture);
    JobSpec job = SmallJobOf(architecture);
    job.mutable_training()->set_dropout(0.1);
    const Trained trained = TrainAndSave(architecture, job);
    const TrainingRun run = Evaluate(trained, EvaluationOf(trained));
    ExpectLoss(run, trained.validation_loss, kSameWeights);
    const StepRecord& last = run.steps[0].back();
    EXPECT_EQ(last.counted_tokens(),
              kWindows * job.training().sequence_length());
    EXPECT_FALSE(last.has_validation_loss());
    for (const std::string& warning : run.warnings) {
      EXPECT_EQ(warning.find("num_nextn"), std::string::npos) << warning;
      EXPECT_EQ(warning.find("mtp"), std::string::npos) << warning;
    }
  }
}

TEST(Evaluation, CountsWhatIsolatedDocumentsPredict) {
  JobSpec job = SmallJob();
  job.mutable_data()->set_tokens(WriteTokens("documents.tokens", 4000, 34));
  job.mutable_data()->set_isolate_documents(true);
  const Trained trained = TrainAndSave("documents", job);
  const TrainingRun run = Evaluate(trained, EvaluationOf(trained));
  ExpectLoss(run, trained.validation_loss, kSameWeights);
  // Steps differ in how many that are, so a mean of means would not be it.
  std::set<int64_t> of_steps;
  int64_t before = 0;
  for (const StepRecord& step : run.steps[0]) {
    of_steps.insert(step.counted_tokens() - before);
    before = step.counted_tokens();
  }
  EXPECT_EQ(of_steps.size(), run.steps[0].size());
  EXPECT_LT(before, kWindows * 17);
}

TEST(Evaluation, ComputesInThePrecisionOfTraining) {
  for (const char* const precision : {"bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    JobSpec job = SmallJob();
    job.mutable_training()->set_precision(precision);
    const Trained trained = TrainAndSave(precision, job);
    const TrainingRun run = Evaluate(trained, EvaluationOf(trained));
    ExpectLoss(run, trained.validation_loss, kSameWeights);
    EXPECT_EQ(run.steps[0].back().loss_scale(), 0);
  }
}

// The same weights for all cuts.
const Trained& TrainedTensorJob(const std::string& architecture) {
  static auto* const all = new std::map<std::string, Trained>;
  const auto [found, is_new] = all->try_emplace(architecture);
  if (is_new) {
    found->second = TrainAndSave(absl::StrCat("cut_", architecture),
                                 TensorJob({.architecture = architecture}));
  }
  return found->second;
}

void ExpectSameCut(const std::string& architecture, const JobCut& cut) {
  const Trained& trained = TrainedTensorJob(architecture);
  JobSpec uncut = EvaluationOf(trained);
  // Blocks of ranks share the sequences of a micro-batch.
  if (cut.tensor_method == "3d") {
    uncut.mutable_training()->set_micro_batch_size(4);
  }
  const JobSpec job = CutJob(uncut, cut);
  SCOPED_TRACE(job.parallelism().ShortDebugString());
  const TrainingRun run = Evaluate(trained, job, cut.ranks());
  ExpectLoss(run, trained.validation_loss, kRelativeError);
  for (const auto& steps : run.steps) {
    EXPECT_EQ(steps.back().loss(), run.steps[0].back().loss());
  }
}

TEST(Evaluation, IsThatOfOneRankOverAnyLayout) {
  for (const char* const architecture : {"gpt2", "llama"}) {
    for (const JobCut& cut :
         {JobCut{}, JobCut{.data = 2}, JobCut{.data = 4},
          JobCut{.data = 4, .zero = 1}, JobCut{.data = 4, .zero = 2},
          JobCut{.data = 4, .zero = 3},
          JobCut{.data = 4, .zero = 3, .zero_size = 2, .reshard = false},
          JobCut{.tensor = 2, .sequence = true},
          JobCut{.tensor = 4, .tensor_method = "2d"},
          JobCut{.tensor = 8, .tensor_method = "3d"}, JobCut{.context = 2},
          JobCut{.context = 4, .context_method = "ring"},
          JobCut{.tensor = 2, .pipeline = 2, .data = 2, .zero = 3}}) {
      ExpectSameCut(architecture, cut);
    }
  }
  ExpectSameCut("mixtral", {.data = 2, .expert = 2});
  ExpectSameCut("mixtral", {.tensor = 2, .pipeline = 2});
}

// Those that never drain, too: there is nothing to be late for.
TEST(Evaluation, IsThatOfOneRankThroughAnyPipeline) {
  for (const Pipeline& pipeline : Pipelines()) {
    ExpectSameCut(
        "gpt2",
        {.schedule = std::string(pipeline.name), .pipeline = 2, .data = 2});
  }
}

TEST(Evaluation, TakesUnevenShares) {
  const Trained& trained = TrainedTensorJob("gpt2");
  JobSpec job = EvaluationOf(trained);
  job.mutable_parallelism()->set_data(2);
  job.mutable_parallelism()->add_micro_batches(3);
  job.mutable_parallelism()->add_micro_batches(1);
  ExpectLoss(Evaluate(trained, job, 2), trained.validation_loss,
             kRelativeError);
}

TEST(Evaluation, FetchesParametersFromBelowTheDevice) {
  const Trained& trained = TrainedTensorJob("llama");
  for (const char* const tier : {"host", "nvme"}) {
    for (const char* const chunks : {"", "auto"}) {
      JobSpec job = EvaluationOf(trained);
      job.mutable_memory()->set_parameters(tier);
      if (*chunks != 0) job.mutable_memory()->set_chunk_megabytes(chunks);
      SCOPED_TRACE(job.memory().ShortDebugString());
      ExpectLoss(Evaluate(trained, job), trained.validation_loss,
                 kRelativeError);
    }
  }
}

// A device that does not wait for its kernels, so that a step is read when the
// next one is under way.
TEST(Evaluation, ReadsStepsLate) {
  const Trained& trained = TrainedTensorJob("gpt2");
  JobSpec job = EvaluationOf(trained);
  job.mutable_parallelism()->set_data(2);
  const TrainingRun run = Train(
      job, {.ranks = 2, .resume = trained.checkpoint, .reads_late = true});
  ExpectLoss(run, trained.validation_loss, kRelativeError);
}

TEST(Evaluation, HasNoMemoryForTraining) {
  const Trained& trained = TrainedTensorJob("gpt2");
  const auto plan = CompileForThreads(EvaluationOf(trained), 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->roles(0).programs_size(), 1);
  const Program& program = plan->roles(0).programs(0);
  EXPECT_EQ(program.kind(), Program::VALIDATE);
  for (const Instruction& instruction : program.instructions()) {
    const bool forward = instruction.kind() == Instruction::LOAD_BATCH ||
                         instruction.kind() == Instruction::FORWARD;
    EXPECT_TRUE(forward) << instruction.ShortDebugString();
  }
  std::set<std::string> items;
  for (const MemoryItem& item : MemoryItems(plan->roles(0))) {
    items.insert(item.item());
  }
  EXPECT_EQ(items.count("gradients"), 0u);
  EXPECT_EQ(items.count("optimizer_moments"), 0u);
  EXPECT_EQ(items.count("master_weights"), 0u);
  EXPECT_EQ(items.count("parameters"), 1u);
  EXPECT_EQ(plan->derived().frozen_parameters(), plan->derived().parameters());
  // A forward pass is two of the six operations of a parameter.
  const auto training = CompileForThreads(trained.job, 1);
  ASSERT_TRUE(training.ok()) << training.status();
  EXPECT_NEAR(plan->derived().model_flops_per_token() /
                  training->derived().model_flops_per_token(),
              1.0 / 3, 1e-2);
}

TEST(Evaluation, RefusesStepsThatAreNotThoseOfTheFile) {
  const Trained& trained = TrainedTensorJob("gpt2");
  for (const int64_t steps : {2, 4}) {
    JobSpec job = EvaluationOf(trained);
    job.mutable_training()->set_steps(steps);
    const absl::Status refused = Evaluate(trained, job).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(refused.message().find("training.steps: "), std::string::npos);
    EXPECT_NE(refused.message().find("21 windows of 24 tokens, 3 steps"),
              std::string::npos)
        << refused;
  }
}

// Settings that change the loss of the same weights, and no others.
TEST(Evaluation, SaysInWhatItDiffersFromTheTraining) {
  const Trained& trained = TrainedTensorJob("llama");
  EXPECT_TRUE(Evaluate(trained, EvaluationOf(trained)).warnings.empty());
  JobSpec job = EvaluationOf(trained);
  job.mutable_model()->set_rope_theta(500);
  job.mutable_training()->set_precision("bf16");
  job.mutable_training()->set_seed(99);
  const TrainingRun run = Evaluate(trained, job);
  ASSERT_TRUE(run.status().ok()) << run.status();
  ASSERT_EQ(run.warnings.size(), 1u);
  for (const char* const field : {"model.rope_theta is",
                                  "training.precision is "
                                  "\"f32\" there"}) {
    EXPECT_NE(run.warnings[0].find(field), std::string::npos)
        << run.warnings[0];
  }
  EXPECT_EQ(run.warnings[0].find("optimizer"), std::string::npos);
  EXPECT_EQ(run.warnings[0].find("seed"), std::string::npos);
}

// Weights that another run has spoilt.
TEST(Evaluation, SaysThatALossIsNotFinite) {
  JobSpec job = EvaluationOf(TrainedTensorJob("gpt2"));
  job.mutable_training()->set_precision("fp16");
  job.mutable_model()->set_initializer_range(100);
  job.mutable_checkpoint()->clear_resume();
  const absl::Status refused = Train(job, {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("no finite loss"), std::string::npos)
      << refused;
}

// What transformers says of a directory (tests/oracle/hf), on the one window
// that its ids are.
TEST(Evaluation, IsTheLossOfTransformers) {
  for (const char* const name :
       {"gpt2_tiny", "llama_tied_bf16_sharded", "mistral_tiny", "qwen3_tiny",
        "gpt_neox_tiny", "qwen2_moe_tiny", "deepseek_v3_tiny"}) {
    SCOPED_TRACE(name);
    const PublishedWindow window = PublishedWindowOf(name);
    const TrainingRun run = Train(window.job, {.ranks = 2});
    ASSERT_TRUE(run.status().ok()) << run.status();
    EXPECT_NEAR(run.steps[0][0].loss(), window.loss, 1e-4);
    EXPECT_EQ(run.steps[0][0].counted_tokens(), window.targets);
  }
}

}  // namespace
}  // namespace troupe
