#include "clients/cli/load_job.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "storage/dataset/token_file_writer.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::string File(const std::string& text) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/job.yaml");
  std::ofstream(path) << text;
  return path;
}

TEST(LoadJob, FillsInTheModelOfADirectory) {
  const std::string path = File("name: a\n");
  const auto job = LoadJob(
      JobUse::kRun,
      {.path = path, .overrides = {"model.hf=tests/oracle/hf/llama_tiny"}});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.model().architecture(), "llama");
  EXPECT_EQ(job->spec.model().hf().front(), '/') << "workers are elsewhere";
}

TEST(LoadJob, AWrongDirectoryIsFoundWhereItWasWritten) {
  const auto job = LoadJob(JobUse::kRun,
                           {.path = File("name: a\nmodel:\n  hf: /nowhere\n")});
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(job.status().message()),
              HasSubstr("job.yaml:3:7: model.hf: /nowhere/config.json"));
}

TEST(LoadJob, AnEvaluationHasAStepForEachBatchOfItsWindows) {
  const std::string tokens = absl::StrCat(::testing::TempDir(), "/v.tokens");
  auto writer = TokenFileWriter::Create(
      {.path = tokens, .vocab_size = 256, .tokenizer = "bytes"});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(std::vector<int32_t>(1005, 1)).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  const auto load = [&](const std::string& path, const std::string& training) {
    return LoadJob(JobUse::kRun,
                   {.path = File(absl::StrCat(
                        "evaluate: true\nmodel: {architecture: gpt2}\n"
                        "data: {validation: ",
                        path, "}\ntraining: {", training, "}\n"))});
  };
  // 100 windows.
  const std::string length = "sequence_length: 10, ";
  EXPECT_EQ(
      load(tokens, length + "global_batch_size: 8")->spec.training().steps(),
      13);
  EXPECT_EQ(
      load(tokens, length + "global_batch_size: 10")->spec.training().steps(),
      10);
  EXPECT_EQ(load(tokens, length + "global_batch_size: 8, steps: 2")
                ->spec.training()
                .steps(),
            2)
      << "workers refuse that";
  EXPECT_THAT(std::string(load(tokens, length).status().message()),
              HasSubstr("training.global_batch_size: is needed"));
  EXPECT_THAT(
      std::string(load(tokens, "global_batch_size: 8").status().message()),
      HasSubstr("training.sequence_length: is needed"));
  EXPECT_THAT(
      std::string(
          load("/no/such", length + "global_batch_size: 8").status().message()),
      HasSubstr("job.yaml:3:20: data.validation: evaluate needs its "
                "size: "));
}

TEST(LoadJob, EpochsBecomeSteps) {
  const std::string tokens = absl::StrCat(::testing::TempDir(), "/e.tokens");
  auto writer = TokenFileWriter::Create(
      {.path = tokens, .vocab_size = 256, .tokenizer = "bytes"});
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(std::vector<int32_t>(1001, 1)).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  const auto load = [&](const std::string& data, const std::string& training) {
    return LoadJob(JobUse::kRun,
                   {.path = File(absl::StrCat(
                        "model: {architecture: gpt2}\ndata: ", data,
                        "\ntraining: {global_batch_size: 8, sequence_length: "
                        "10, ",
                        training, "}\n"))});
  };
  // 100 windows; with a tenth held back 90, and of two files 200.
  const std::string one = absl::StrCat("{tokens: ", tokens, "}");
  EXPECT_EQ(load(one, "epochs: 1")->spec.training().steps(), 13);
  EXPECT_EQ(load(one, "epochs: 2")->spec.training().steps(), 25);
  EXPECT_EQ(load(one, "epochs: 0.5")->spec.training().steps(), 7);
  EXPECT_FALSE(load(one, "epochs: 1")->spec.training().has_epochs());
  const std::string held_back =
      absl::StrCat("{tokens: ", tokens, ", validation_fraction: 0.1}");
  EXPECT_EQ(load(held_back, "epochs: 1")->spec.training().steps(), 12);
  EXPECT_EQ(load(absl::StrCat("[", one, ", ", one, "]"), "epochs: 1")
                ->spec.training()
                .steps(),
            25);
  const auto error = [&](const std::string& data, const std::string& training) {
    return std::string(load(data, training).status().message());
  };
  EXPECT_THAT(error(one, "epochs: 1, steps: 2"),
              HasSubstr("job.yaml:3:63: training.epochs: is beside "
                        "training.steps"));
  EXPECT_THAT(error(one, "epochs: 0"), HasSubstr("training.epochs: 0 is out"));
  EXPECT_THAT(error("{tokens: /no/such}", "epochs: 1"),
              HasSubstr("job.yaml:2:16: data.tokens: training.epochs needs its "
                        "size: /no/such"));
  EXPECT_THAT(error("", "epochs: 1"), HasSubstr("is for a job with "
                                                "data.tokens"));
}

// Weights are asked for where the job begins with them.
TEST(LoadJob, WeightsAreNeededWhereTheyAreTrained) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/no_weights");
  std::filesystem::create_directories(folder);
  std::filesystem::copy("tests/oracle/hf/llama_tiny/config.json", folder,
                        std::filesystem::copy_options::overwrite_existing);
  const JobFileOptions first = {.path = File("name: a\n"),
                                .overrides = {"model.hf=" + folder}};
  EXPECT_THAT(std::string(LoadJob(JobUse::kRun, first).status().message()),
              HasSubstr("has neither model.safetensors nor"));
  EXPECT_TRUE(LoadJob(JobUse::kPlan, first).ok());
  for (const char* resume : {"/checkpoints/step-00000010", "latest"}) {
    JobFileOptions later = first;
    later.overrides.push_back(absl::StrCat("checkpoint.resume=", resume));
    EXPECT_TRUE(LoadJob(JobUse::kRun, later).ok()) << resume;
  }
  // There may be a checkpoint, or weights where the workers are.
  JobFileOptions either = first;
  either.overrides.push_back("checkpoint.resume=auto");
  EXPECT_TRUE(LoadJob(JobUse::kRun, either).ok());
}

// A job that is submitted again goes on from its checkpoint. What has become of
// the weights meanwhile must not stop it; without a checkpoint, workers check.
TEST(LoadJob, WeightsAreNotReadWhereTheJobMayResume) {
  const std::string folder = absl::StrCat(::testing::TempDir(), "/damaged");
  std::filesystem::create_directories(folder);
  std::filesystem::copy("tests/oracle/hf/llama_tiny/config.json", folder,
                        std::filesystem::copy_options::overwrite_existing);
  std::ofstream(folder + "/model.safetensors") << "damaged";
  JobFileOptions job = {.path = File("name: a\n"),
                        .overrides = {"model.hf=" + folder}};
  EXPECT_FALSE(LoadJob(JobUse::kRun, job).ok());
  job.overrides.push_back("checkpoint.resume=latest");
  EXPECT_TRUE(LoadJob(JobUse::kRun, job).ok());
}

TEST(LoadJob, OthersAreAsWritten) {
  const auto job = LoadJob(
      JobUse::kRun, {.path = File("name: a\nmodel: {hidden_size: 8}\n")});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.model().hidden_size(), 8);
}

}  // namespace
}  // namespace troupe
