#include "clients/cli/load_job.h"

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
      {.path = path, .overrides = {"model.hf=tests/oracle/hf/llama_tiny"}});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.model().architecture(), "llama");
  EXPECT_EQ(job->spec.model().hf().front(), '/') << "workers are elsewhere";
}

TEST(LoadJob, AWrongDirectoryIsFoundWhereItWasWritten) {
  const auto job = LoadJob({.path = File("name: a\nmodel:\n  hf: /nowhere\n")});
  EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(job.status().message()),
              HasSubstr("job.yaml:3:7: model.hf: /nowhere/config.json"));
}

TEST(LoadJob, OthersAreAsWritten) {
  const auto job =
      LoadJob({.path = File("name: a\nmodel: {hidden_size: 8}\n")});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->spec.model().hidden_size(), 8);
}

}  // namespace
}  // namespace troupe
