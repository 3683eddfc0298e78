#include "clients/cli/cluster_flags.h"

#include <sstream>

#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class ClusterFlagsTest : public CommandTestBase {};

TEST_F(ClusterFlagsTest, FindsJobsByNumberNameAndLatest) {
  const auto client =
      Client::Connect(scheduler_.address(), {.trust = {.insecure = 1}}).value();
  EXPECT_EQ(FindJob(*client, "1").value(), 1);
  EXPECT_EQ(FindJob(*client, "77").value(), 77) << "the scheduler will say";
  EXPECT_EQ(FindJob(*client, "demo").value(), 2) << "the newest";
  EXPECT_EQ(FindJob(*client, "latest").value(), 2);
  EXPECT_EQ(FindJob(*client, "nobody").status(),
            absl::NotFoundError("no job is called nobody; troupe jobs lists "
                                "those there are"));
}

TEST_F(ClusterFlagsTest, LatestIsNoJobThatACommandMadeForItself) {
  const auto client =
      Client::Connect(scheduler_.address(), {.trust = {.insecure = 1}}).value();
  scheduler_.jobs[1].mutable_status()->set_made_by("verify");
  EXPECT_EQ(FindJob(*client, "latest").value(), 1);
  EXPECT_EQ(FindJob(*client, "demo").value(), 2) << "by its name";
  scheduler_.jobs[0].mutable_status()->set_made_by("verify");
  EXPECT_EQ(
      FindJob(*client, "latest").status(),
      absl::NotFoundError("no job latest: those there are `troupe verify` "
                          "made for itself; name one by its number, as "
                          "2"));
}

TEST_F(ClusterFlagsTest, SaysThatThereIsNoJob) {
  scheduler_.jobs.clear();
  const auto client =
      Client::Connect(scheduler_.address(), {.trust = {.insecure = 1}}).value();
  EXPECT_EQ(FindJob(*client, "latest").status(),
            absl::NotFoundError("no job latest: this cluster has had none"));
}

TEST_F(ClusterFlagsTest, TheEnvironmentNamesTheCluster) {
  std::ostringstream text;
  const Console console{
      .out = text, .err = text, .environment_dir = "/no/such"};
  EXPECT_EQ(ClusterFlags().Connect(console).status().code(),
            absl::StatusCode::kNotFound);
  const Console bare{.out = text, .err = text};
  EXPECT_EQ(ClusterFlags().Connect(bare).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ClusterFlags().Words(), "");
}

// The message of a command that finds no cluster there says what to type.
TEST_F(ClusterFlagsTest, SuggestedCommandsCanBeCopied) {
  const CommandOutcome outcome =
      RunCommand({"jobs", "--dir", "/no such/cluster"});
  EXPECT_NE(outcome.err.find("--dir '/no such/cluster'\n"), std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace troupe
