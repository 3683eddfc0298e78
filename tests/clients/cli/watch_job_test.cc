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
    return WatchJob(
        Client::Connect(scheduler_.address(), {.trust = {.insecure = 1}})
            .value(),
        [this] { return connect_again_(); }, options, interrupt_, console);
  }

  ConnectAgain connect_again_ =
      []() -> absl::StatusOr<std::unique_ptr<Client>> {
    return absl::UnavailableError("there is none");
  };
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

WatchJobResponse StepOf(int64_t step) {
  WatchJobResponse update;
  update.mutable_status()->set_id(2);
  update.mutable_status()->set_name("demo");
  update.mutable_status()->set_state(RUNNING);
  update.add_steps()->set_step(step);
  update.add_events()->set_text("something");
  return update;
}

// The first one ends its stream while the job runs, as a scheduler does that is
// stopped; the next one has the rest.
TEST_F(WatchJobTest, GoesOnWhereItWasWithTheNextScheduler) {
  scheduler_.watch = {StepOf(1), StepOf(2)};
  FakeJobScheduler next;
  next.watch = {StepOf(3)};
  next.watch[0].mutable_status()->set_state(SUCCEEDED);
  int asked = 0;
  connect_again_ = [&]() -> absl::StatusOr<std::unique_ptr<Client>> {
    if (++asked < 3) return absl::NotFoundError("not yet");
    return Client::Connect(next.address(), {.trust = {.insecure = 1}});
  };
  EXPECT_TRUE(
      Watch({.from = {.id = 2}, .look_after = absl::Milliseconds(1)}).ok());
  EXPECT_EQ(asked, 3);
  const auto watched = next.asked().watched;
  ASSERT_EQ(watched.size(), 1u);
  EXPECT_EQ(watched[0].id(), 2);
  EXPECT_EQ(watched[0].from_step(), 2);
  EXPECT_EQ(watched[0].from_event(), 2);
  EXPECT_NE(err_.str().find("looking for it again"), std::string::npos);
  EXPECT_NE(err_.str().find("found the scheduler at " + next.address()),
            std::string::npos);
}

// A long curve takes several responses, each with the status of the end.
TEST_F(WatchJobTest, GoesOnWhereTheStreamOfAnEndedJobBreaks) {
  scheduler_.watch = {StepOf(1)};
  scheduler_.watch[0].mutable_status()->set_state(SUCCEEDED);
  scheduler_.watch_breaks = true;
  FakeJobScheduler next;
  next.watch = {StepOf(2)};
  next.watch[0].mutable_status()->set_state(SUCCEEDED);
  connect_again_ = [&] {
    return Client::Connect(next.address(), {.trust = {.insecure = 1}});
  };
  EXPECT_TRUE(
      Watch({.from = {.id = 2}, .look_after = absl::Milliseconds(1)}).ok());
  const auto watched = next.asked().watched;
  ASSERT_EQ(watched.size(), 1u);
  EXPECT_EQ(watched[0].from_step(), 1);
}

TEST_F(WatchJobTest, GivesUpWhenItsPatienceEnds) {
  scheduler_.watch = {StepOf(1)};
  const absl::Status status = Watch({.from = {.id = 2},
                                     .cluster_words = " --dir d",
                                     .patience = absl::Milliseconds(20),
                                     .look_after = absl::Milliseconds(1)});
  EXPECT_EQ(status,
            absl::UnavailableError(
                "the scheduler did not come back within 20ms: there is none; "
                "what has become of job 2 says, once it is back: troupe watch "
                "2 --dir d"));
}

// It answers, and knows nothing to say.
TEST_F(WatchJobTest, GivesUpOnASchedulerThatBreaksOffAgainAndAgain) {
  scheduler_.watch = {StepOf(1)};
  FakeJobScheduler next;
  next.watch.clear();
  int asked = 0;
  connect_again_ = [&]() -> absl::StatusOr<std::unique_ptr<Client>> {
    ++asked;
    return Client::Connect(next.address(), {.trust = {.insecure = 1}});
  };
  const absl::Status status = Watch({.from = {.id = 2},
                                     .patience = absl::Milliseconds(100),
                                     .look_after = absl::Milliseconds(1)});
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_GT(asked, 1);
}

}  // namespace
}  // namespace troupe
