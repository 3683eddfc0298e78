#include <pthread.h>
#include <signal.h>

#include <thread>

#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class SubmitTest : public CommandTestBase {};

TEST_F(SubmitTest, SendsTheJobWithItsOverrides) {
  const std::string file = File("job.yaml", "name: demo\n");
  const CommandOutcome outcome =
      Ask({"submit", "--set", "optimizer.betas=[0.9,0.99]", "--set",
           "training.steps=7", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "job 1 (demo) accepted\nfollow it with: troupe watch "
            "1 --scheduler " +
                scheduler_.address() + " --insecure\n");
  const JobSpec job = scheduler_.asked().submitted.at(0);
  EXPECT_EQ(job.optimizer().betas(1), 0.99);
  EXPECT_EQ(job.training().steps(), 7);
}

TEST_F(SubmitTest, SaysThatCopiesCanBeSavedNowhere) {
  const std::string file = File(
      "recovers.yaml", "name: demo\nrecovery: {}\nparallelism: {data: 2}\n");
  const CommandOutcome lacks = Ask({"submit", file});
  EXPECT_EQ(lacks.code, 0);
  EXPECT_EQ(lacks.err.find("troupe: recovery: without checkpoint.directory "),
            0u)
      << lacks.err;
  for (const char* setting :
       {"checkpoint.directory=/c", "recovery.copies=0", "parallelism.data=1"}) {
    EXPECT_EQ(Ask({"submit", file, "--set", setting}).err, "") << setting;
  }
}

TEST_F(SubmitTest, ARefusalHasLineAndColumn) {
  scheduler_.refusal =
      absl::InvalidArgumentError("parallelism.data: 3 does not divide 8");
  const std::string file =
      File("bad.yaml", "name: demo\nparallelism:\n  data: 3\n");
  const CommandOutcome outcome = Ask({"submit", file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.err, "troupe: " + file +
                             ":3:9: parallelism.data: 3 does not divide 8\n");
  EXPECT_EQ(Ask({"submit", file, "--set", "parallelism.data=3"}).err,
            "troupe: --set parallelism.data: 3 does not divide 8\n");
}

TEST_F(SubmitTest, WatchedItEndsAsTheJobDoes) {
  const std::string file = File("watched.yaml", "name: demo\n");
  WatchersSee(SUCCEEDED, "");
  const CommandOutcome good = Ask({"submit", file, "--watch"});
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_NE(good.out.find("\nstep 1/4  loss"), std::string::npos) << good.out;
  WatchersSee(CANCELLED, "");
  const CommandOutcome bad = Ask({"submit", file, "--watch"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_EQ(bad.err, "troupe: job 2 (demo) was cancelled\n");
}

// Planning may take minutes.
TEST_F(SubmitTest, CanBeLeftBeforeItsAnswer) {
  scheduler_.submit_hangs = true;
  const std::string file = File("slow.yaml", "name: demo\n");
  const pthread_t command = pthread_self();
  std::thread user([&] {
    while (scheduler_.asked().submitted.empty()) std::this_thread::yield();
    EXPECT_EQ(pthread_kill(command, SIGINT), 0);
  });
  const CommandOutcome outcome = Ask({"submit", file});
  user.join();
  EXPECT_EQ(outcome.code, 130);
  EXPECT_EQ(outcome.err,
            "troupe: left before the scheduler had answered; whether it took "
            "the job says: troupe jobs --scheduler " +
                scheduler_.address() + " --insecure\n");
  scheduler_.WaitForGoneSubmitter();
}

}  // namespace
}  // namespace troupe
