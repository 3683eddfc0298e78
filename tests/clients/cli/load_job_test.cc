#include "clients/cli/load_job.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

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
