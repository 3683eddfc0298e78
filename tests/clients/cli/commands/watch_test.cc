#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class WatchTest : public CommandTestBase {};

TEST_F(WatchTest, FollowsTheNewestJob) {
  WatchersSee(SUCCEEDED, "");
  EXPECT_EQ(Ask({"watch", "latest"}).code, 0);
  EXPECT_EQ(scheduler_.asked().watched.at(0).id(), 2);
  WatchersSee(FAILED, "worker-1 was lost in step 3");
  const CommandOutcome failed = Ask({"watch", "demo"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(failed.err,
            "troupe: job 2 (demo) failed: worker-1 was lost in step 3\n");
}

}  // namespace
}  // namespace troupe
