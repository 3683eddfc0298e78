#include "clients/cli/watch_job.h"

#include <signal.h>
#include <unistd.h>

#include <sstream>

#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

// Before any thread of gRPC's: a base, so that it is made first.
struct WithInterrupt {
  Interrupt interrupt_;
};

class WatchJobTest : public WithInterrupt, public CommandTestBase {
 protected:
  absl::Status Watch(const WatchJobOptions& options) {
    Console console{.out = out_, .err = err_};
    const auto client = Client::Connect(scheduler_.address()).value();
    return WatchJob(*client, options, interrupt_, console);
  }

  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(WatchJobTest, EndsAsTheJobDoes) {
  WatchersSee(SUCCEEDED, "");
  EXPECT_TRUE(Watch({.from = {.id = 2}}).ok());
  WatchersSee(FAILED, "out of luck");
  EXPECT_EQ(Watch({.from = {.id = 2}}).message(),
            "job 2 (demo) failed: out of luck");
  EXPECT_TRUE(Watch({.from = {.id = 2}, .steps = false}).ok())
      << "events only: any end is fine";
}

TEST_F(WatchJobTest, CtrlCLeavesTheJobAndSaysHowToComeBack) {
  scheduler_.watch_hangs = true;
  WatchersSee(RUNNING, "");
  ASSERT_EQ(kill(getpid(), SIGINT), 0);
  EXPECT_EQ(Watch({.from = {.id = 2}, .cluster_words = " --dir d"}).code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(err_.str(),
            "troupe: left job 2, which goes on: troupe watch 2 --dir d  (or: "
            "troupe cancel 2 --dir d)\n");
}

}  // namespace
}  // namespace troupe
