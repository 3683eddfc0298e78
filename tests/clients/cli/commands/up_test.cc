#include <stdlib.h>

#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class UpTest : public CommandTestBase {};

// With real daemons it is tested in tests/cluster.
TEST_F(UpTest, NeedsAFolderAndWorkers) {
  EXPECT_EQ(RunCommand({"up", "--workers", "1"}).code, 2);
  EXPECT_EQ(RunCommand({"up", "--dir", testing::TempDir()}).code, 2);
  EXPECT_EQ(
      RunCommand({"up", "--dir", testing::TempDir(), "--workers", "0"}).code,
      2);
}

TEST_F(UpTest, NeedsTheDaemonsPrograms) {
  setenv("PATH", "/no/such", 1);
  const CommandOutcome outcome =
      RunCommand({"up", "--dir", testing::TempDir() + "/up", "--workers", "1"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("troupe: cannot find troupe-scheduler"),
            std::string::npos)
      << outcome.err;
}

}  // namespace
}  // namespace troupe
