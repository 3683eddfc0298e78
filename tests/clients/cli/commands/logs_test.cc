#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class LogsTest : public CommandTestBase {};

TEST_F(LogsTest, ShowsEvents) {
  scheduler_.jobs[0].add_events()->set_text("queued");
  scheduler_.jobs[0].add_events()->set_text("running");
  EXPECT_EQ(Ask({"logs", "1"}).out, "-  queued\n-  running\n");
}

TEST_F(LogsTest, FollowsToTheEnd) {
  WatchersSee(FAILED, "out of luck");
  const CommandOutcome outcome = Ask({"logs", "2", "--follow"});
  EXPECT_EQ(outcome.code, 0) << "reading a log has no opinion on the job";
  EXPECT_EQ(outcome.out, "-  running\n");
}

}  // namespace
}  // namespace troupe
