#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class DownTest : public CommandTestBase {};

TEST_F(DownTest, NeedsAFolderWithACluster) {
  EXPECT_EQ(RunCommand({"down"}).code, 2);
  const CommandOutcome none =
      RunCommand({"down", "--dir", testing::TempDir() + "/none"});
  EXPECT_EQ(none.code, 1);
  EXPECT_NE(none.err.find("no cluster in"), std::string::npos) << none.err;
}

TEST_F(DownTest, TakesAwayWhatIsLeftOfADeadOne) {
  // A process id that the kernel never gives, so nothing is signalled.
  const std::string file = File(
      "pids.json",
      "[{\"name\": \"scheduler\", \"pid\": 99999999, \"start_ticks\": 7}]");
  const CommandOutcome outcome =
      RunCommand({"down", "--dir", testing::TempDir()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("stopped 0 processes of ", 0), 0) << outcome.out;
  EXPECT_EQ(Content(file), "");
}

}  // namespace
}  // namespace troupe
