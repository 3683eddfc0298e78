#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class CancelTest : public CommandTestBase {};

TEST_F(CancelTest, StopsAJobThatLives) {
  EXPECT_EQ(Ask({"cancel", "2"}).out, "job 2 (demo) is CANCELLED\n");
  EXPECT_EQ(scheduler_.asked().cancelled, std::vector<int64_t>{2});
}

TEST_F(CancelTest, SaysThatAJobHadEnded) {
  const CommandOutcome outcome = Ask({"cancel", "1"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out.substr(0, 29), "job 1 (demo) had ended before");
  EXPECT_EQ(Ask({"cancel", "9"}).err, "troupe: no job 9\n");
}

}  // namespace
}  // namespace troupe
