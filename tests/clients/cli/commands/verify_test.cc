// The whole command runs on real daemons in tests/cluster.
#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class VerifyTest : public CommandTestBase {};

TEST_F(VerifyTest, WantsAJobFileAndSteps) {
  EXPECT_EQ(RunCommand({"verify"}).code, 2);
  EXPECT_EQ(RunCommand({"verify", "job.yaml", "--steps", "0"}).code, 2);
  const CommandOutcome absent = RunCommand({"verify", "/no/such.yaml"});
  EXPECT_EQ(absent.code, 1);
  EXPECT_NE(absent.err.find("/no/such.yaml"), std::string::npos);
}

}  // namespace
}  // namespace troupe
