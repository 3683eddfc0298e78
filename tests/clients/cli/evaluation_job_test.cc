#include "clients/cli/evaluation_job.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/job_json.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/checkpoint/manifest.h"
#include "storage/dataset/token_file_writer.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr char kModel[] = "tests/oracle/hf/gpt2_tiny";

// `count` tokens, the last of which is only predicted.
std::string Tokens(int count) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/", count, ".tokens");
  std::filesystem::remove(path);
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = 96, .tokenizer = "none"});
  EXPECT_TRUE(writer.ok()) << writer.status();
  EXPECT_TRUE((*writer)->Append(std::vector<int32_t>(count, 1)).ok());
  EXPECT_TRUE((*writer)->Finish().ok());
  return path;
}

JobSpec SavedJob() {
  JobSpec job;
  job.set_name("trained");
  job.mutable_model()->set_architecture("gpt2");
  job.mutable_model()->set_num_hidden_layers(2);
  job.mutable_model()->set_hf("/where/it/began");
  job.mutable_data()->set_tokens("/t.tokens");
  job.mutable_data()->set_isolate_documents(true);
  job.mutable_training()->set_sequence_length(20);
  job.mutable_training()->set_precision("bf16");
  job.mutable_training()->set_steps(100);
  job.mutable_training()->mutable_lora()->set_rank(4);
  job.mutable_training()->mutable_lora()->set_adapter("/an/adapter");
  job.mutable_optimizer()->set_lr(1e-3);
  job.mutable_parallelism()->set_tensor(8);
  return job;
}

// A folder of checkpoints of the job, of these steps, without weights.
std::string Checkpoints(const std::vector<int64_t>& steps) {
  const std::string folder =
      absl::StrCat(testing::TempDir(), steps.size(), "_checkpoints");
  std::filesystem::remove_all(folder);
  for (const int64_t step : steps) {
    Manifest manifest;
    manifest.step = step;
    manifest.job = JobJson(SavedJob());
    const std::string path = CheckpointPath(folder, step);
    std::filesystem::create_directories(path);
    std::ofstream(path + "/manifest.json") << FormatManifest(manifest);
  }
  return folder;
}

TEST(EvaluationJob, OfAHuggingFaceDirectory) {
  const auto job = MakeEvaluationJob(
      {.model = kModel, .tokens = Tokens(1001), .overrides = {}, .workers = 3});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->spec.evaluate());
  EXPECT_EQ(job->spec.model().architecture(), "gpt2");
  EXPECT_EQ(job->spec.model().hf().front(), '/') << "workers are elsewhere";
  EXPECT_EQ(job->spec.parallelism().data(), 3);
  const TrainingSpec& training = job->spec.training();
  const int length = job->spec.model().max_position_embeddings();
  EXPECT_EQ(training.sequence_length(), length);
  const int64_t windows = 1000 / length;
  const int64_t batch = training.global_batch_size();
  EXPECT_EQ(training.steps(), (windows + batch - 1) / batch);
  EXPECT_EQ(batch % (training.micro_batch_size() * 3), 0);
  EXPECT_FALSE(job->spec.has_optimizer());
  EXPECT_FALSE(job->spec.checkpoint().has_resume());
}

TEST(EvaluationJob, OfACheckpointIsAsItsJobWas) {
  const std::string folder = Checkpoints({5, 10});
  for (const std::string& path : {folder, CheckpointPath(folder, 10)}) {
    const auto job = MakeEvaluationJob(
        {.model = path, .tokens = Tokens(1001), .overrides = {}});
    ASSERT_TRUE(job.ok()) << job.status();
    const JobSpec& spec = job->spec;
    EXPECT_EQ(spec.checkpoint().resume(), CheckpointPath(folder, 10));
    EXPECT_EQ(spec.model().num_hidden_layers(), 2);
    EXPECT_FALSE(spec.model().has_hf());
    EXPECT_EQ(spec.data().tokens(), "");
    EXPECT_TRUE(spec.data().isolate_documents());
    EXPECT_EQ(spec.training().sequence_length(), 20);
    EXPECT_EQ(spec.training().precision(), "bf16");
    EXPECT_EQ(spec.training().lora().rank(), 4);
    EXPECT_FALSE(spec.training().lora().has_adapter());
    EXPECT_FALSE(spec.has_optimizer());
    EXPECT_EQ(spec.parallelism().tensor(), 0) << "not of its plan";
  }
}

TEST(EvaluationJob, TakesOverrides) {
  const auto job = MakeEvaluationJob(
      {.model = kModel,
       .tokens = Tokens(1001),
       .overrides = {"parallelism.tensor=2", "training.sequence_length=10",
                     "training.global_batch_size=30"},
       .workers = 3});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.parallelism().data(), 0) << "the user says how";
  EXPECT_EQ(job->spec.training().steps(), 4) << "100 windows";
  EXPECT_EQ(job->spec.training().micro_batch_size(), 1);
}

EvaluationOptions RowsOptions(int64_t count, int64_t longest) {
  return {.model = kModel,
          .tokens = "/rows.tokens",  // not written yet
          .rows = {.count = count,
                   .longest = longest,
                   .longest_is = "q.jsonl:7: choices[2]"},
          .overrides = {},
          .workers = 3};
}

TEST(EvaluationJob, OfRowsFitsTheLongest) {
  const auto job = MakeEvaluationJob(RowsOptions(1000, 5));
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->spec.sequence_losses());
  EXPECT_EQ(job->spec.data().validation(), "/rows.tokens");
  const TrainingSpec& training = job->spec.training();
  EXPECT_EQ(training.sequence_length(), 16);
  const int64_t batch = training.global_batch_size();
  EXPECT_EQ(batch % (training.micro_batch_size() * 3), 0);
  EXPECT_EQ(training.steps(), (1000 + batch - 1) / batch);
  const int positions = job->spec.model().max_position_embeddings();
  const auto full = MakeEvaluationJob(RowsOptions(10, positions));
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_EQ(full->spec.training().sequence_length(), positions);
  // Few enough steps for the scheduler to keep.
  const auto many = MakeEvaluationJob(RowsOptions(4'000'000, 16));
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_LE(many->spec.training().steps(), 4000);
}

// However many workers are idle, no default is refused.
TEST(EvaluationJob, OfRowsAStepSaysTheLossesOfAsManyAsItCan) {
  for (const int workers : {1, 2'000, 16'000, 70'000}) {
    EvaluationOptions options = RowsOptions(4'000'000, 5);
    options.workers = workers;
    const auto job = MakeEvaluationJob(options);
    ASSERT_TRUE(job.ok()) << job.status();
    const TrainingSpec& training = job->spec.training();
    const int64_t replicas = job->spec.parallelism().data();
    const int64_t batch = training.global_batch_size();
    EXPECT_LE(batch, 65'536) << workers;
    EXPECT_GE(batch, 1'000) << workers;
    EXPECT_GE(training.micro_batch_size(), 1) << workers;
    EXPECT_EQ(batch % (training.micro_batch_size() * replicas), 0) << workers;
    EXPECT_EQ(training.steps(), (4'000'000 + batch - 1) / batch) << workers;
  }
}

TEST(EvaluationJob, OfRowsRefusesTheTooLong) {
  const auto refused = MakeEvaluationJob(RowsOptions(10, 4000));
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("q.jsonl:7: choices[2] is of 4000 tokens with its "
                        "prompt, and the model was trained on sequences of "));
  EvaluationOptions options = RowsOptions(10, 20);
  options.overrides = {"training.sequence_length=19"};
  EXPECT_THAT(std::string(MakeEvaluationJob(options).status().message()),
              HasSubstr("training.sequence_length is 19"));
  options.overrides = {"training.sequence_length=20"};
  EXPECT_EQ(MakeEvaluationJob(options)->spec.training().sequence_length(), 20);
  // Positions that were never trained give no likelihood worth the name.
  options = RowsOptions(10, 21);
  options.model = CheckpointPath(Checkpoints({5}), 5);
  EXPECT_THAT(std::string(MakeEvaluationJob(options).status().message()),
              HasSubstr("was trained on sequences of 20"));
}

TEST(EvaluationJob, OfRowsKeepsWhatIsCounted) {
  for (const char* const setting :
       {"data.validation=/other.tokens", "sequence_losses=false",
        "evaluate=false", "training.steps=3"}) {
    EvaluationOptions options = RowsOptions(10, 5);
    options.overrides = {setting};
    EXPECT_THAT(std::string(MakeEvaluationJob(options).status().message()),
                HasSubstr("leave it out"))
        << setting;
  }
}

TEST(EvaluationJob, SaysWhatIsNoModel) {
  const auto error = [](const std::string& model,
                        const std::vector<std::string>& overrides) {
    return std::string(
        MakeEvaluationJob(
            {.model = model, .tokens = Tokens(5), .overrides = overrides})
            .status()
            .message());
  };
  EXPECT_THAT(error("/no/such", {}),
              HasSubstr("/no/such: there is no such directory"));
  EXPECT_THAT(error(testing::TempDir(), {}), HasSubstr("is no model"));
  EXPECT_THAT(error(kModel, {"training.stops=1"}), HasSubstr("no such field"));
  EXPECT_THAT(error(kModel, {}), HasSubstr("data.validation: of 5 tokens"));
}

}  // namespace
}  // namespace troupe
