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

TEST_F(CancelTest, EndsAText) {
  EXPECT_EQ(Ask({"cancel", "--text", "3"}).out,
            "text 3 is ended; worker-0 is told to stop\n");
  EXPECT_EQ(scheduler_.asked().cancelled_texts, std::vector<int64_t>{3});
  EXPECT_EQ(Ask({"cancel"}).code, 2);
  EXPECT_EQ(Ask({"cancel", "2", "--text", "3"}).code, 2);
  EXPECT_EQ(Ask({"cancel", "--text", "3", "--checkpoint"}).code, 2);
  EXPECT_TRUE(scheduler_.asked().cancelled.empty());
}

}  // namespace
}  // namespace troupe
