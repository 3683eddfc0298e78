// What users and machines do to a cluster, with real daemons.
#include <signal.h>

#include <cstdlib>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "proto/base/process_state.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

class FaultsTest : public ClusterTestBase {
 protected:
  // The number of an endless job that has taken a few steps, and its watcher.
  std::unique_ptr<TroupeProgram> StartEndless(
      const std::vector<std::string>& settings = {}) {
    std::vector<std::string> all = settings;
    all.push_back(kEndless);
    std::vector<std::string> command = SubmitCommand(all);
    command.push_back("--watch");
    auto program = std::make_unique<TroupeProgram>(Command(command));
    EXPECT_NE(program->WaitForLine("step 3/"), "");
    return program;
  }

  // What a watcher was told of a job that ended as `who` got SIGTERM, and whose
  // checkpoints go to saved/.
  void ExpectSaved(const Outcome& watched, const std::string& who) {
    EXPECT_NE(watched.out.find(who + " was asked to end (SIGTERM) after step "),
              std::string::npos)
        << watched.out << watched.err;
    EXPECT_NE(watched.out.find("; saved in " + dir() + "/saved/step-"),
              std::string::npos)
        << watched.out;
  }
};

TEST_F(FaultsTest, AKilledWorkerFailsTheJobAndTheNextOneRuns) {
  Up(3);
  const auto job = StartEndless();
  const std::string victim = Describe(1)["workers"][1];
  const absl::Time killed = absl::Now();
  Kill(victim);
  const Outcome outcome = job->Wait();
  EXPECT_LT(absl::Now() - killed, absl::Seconds(10));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("failed"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(victim), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("step"), std::string::npos) << outcome.err;
  EXPECT_EQ(Describe(1)["state"], "FAILED");

  EXPECT_EQ(Watch(Submit()).code, 0) << "two workers are left";
  EXPECT_NE(Troupe({"workers"}).out.find("LOST"), std::string::npos);
}

TEST_F(FaultsTest, CancelsAJobThatRunsAndOneThatWaits) {
  Up(2);
  const auto running = StartEndless();
  const int waiting = Submit();
  const auto described = Describe(waiting);
  EXPECT_EQ(described["state"], "QUEUED");
  EXPECT_NE(described["reason"], "") << "a job that waits says why";
  EXPECT_EQ(Troupe({"cancel", std::to_string(waiting)}).code, 0);
  EXPECT_EQ(Describe(waiting)["state"], "CANCELLED");
  EXPECT_EQ(Describe(1)["state"], "RUNNING");

  EXPECT_EQ(Troupe({"cancel", "1"}).code, 0);
  const Outcome cancelled = running->Wait();
  EXPECT_EQ(cancelled.code, 1);
  EXPECT_NE(cancelled.err.find("was cancelled"), std::string::npos)
      << cancelled.err;
  EXPECT_EQ(Describe(1)["state"], "CANCELLED");
  EXPECT_NE(Troupe({"cancel", "1"}).out.find("had ended before"),
            std::string::npos);
  EXPECT_EQ(Watch(Submit()).code, 0) << "its workers are free again";
}

TEST_F(FaultsTest, AClientThatGoesAwayHarmsNothing) {
  Up(2);
  auto job = StartEndless();
  job->Signal(SIGKILL);
  EXPECT_EQ(job->Wait().code, 128 + SIGKILL);

  TroupeProgram watcher(Command({"watch", "1"}));
  EXPECT_NE(watcher.WaitForLine("step 5/"), "") << "the past steps come first";
  watcher.Signal(SIGINT);
  const Outcome left = watcher.Wait();
  EXPECT_EQ(left.code, 130);
  EXPECT_NE(left.err.find("troupe watch 1 --dir " + dir()), std::string::npos)
      << left.err;
  EXPECT_EQ(Describe(1)["state"], "RUNNING");
  EXPECT_EQ(Troupe({"cancel", "1"}).code, 0);
}

TEST_F(FaultsTest, OneFolderHasOneCluster) {
  Up(1);
  const Outcome again = Troupe({"up", "--workers", "1"});
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.err.find("a cluster already lives in"), std::string::npos)
      << again.err;
  const Outcome second = RunProgram({kScheduler, "--state", dir()});
  EXPECT_EQ(second.code, 1);
  EXPECT_NE(second.err.find("troupe-scheduler: "), std::string::npos)
      << second.err;
  EXPECT_EQ(Troupe({"jobs"}).code, 0) << "the first one still serves";
}

TEST_F(FaultsTest, JobsOutliveTheirScheduler) {
  Up(1);
  const int job = Submit({"parallelism.data=1"});
  ASSERT_EQ(Watch(job).code, 0);
  ASSERT_EQ(Troupe({"down"}).code, 0);
  EXPECT_EQ(Troupe({"jobs"}).code, 1);
  Up(1);
  const auto described = Describe(job);
  EXPECT_EQ(described["state"], "SUCCEEDED");
  EXPECT_EQ(described["steps"].size(), 4);
  EXPECT_EQ(Watch(Submit({"parallelism.data=1"})).code, 0);
}

TEST_F(FaultsTest, DownLeavesNothingRunning) {
  Up(2);
  const pid_t worker = WorkerPid("worker-0");
  const pid_t scheduler = WorkerPid("scheduler");
  const auto job = StartEndless();
  const Outcome down = Troupe({"down"});
  EXPECT_EQ(down.code, 0) << down.err;
  EXPECT_EQ(down.out, "stopped 3 processes of " + dir() + "\n");
  for (const pid_t pid : {worker, scheduler}) {
    EXPECT_FALSE(IsRunning(int64_t{pid})) << pid;
  }
  EXPECT_EQ(job->Wait().code, 1);
  EXPECT_EQ(Troupe({"down"}).code, 1) << "there is no cluster any more";
}

TEST_F(FaultsTest, UpThatFailsLeavesNothingBehind) {
  const Outcome up =
      Troupe({"up", "--workers", "1", "--device-memory", "lots"});
  EXPECT_EQ(up.code, 1);
  EXPECT_NE(up.err.find("worker-0 ended while starting"), std::string::npos)
      << up.err;
  EXPECT_NE(up.err.find("lots"), std::string::npos) << "its log's end";
  const Outcome down = Troupe({"down"});
  EXPECT_NE(down.err.find("no cluster in"), std::string::npos) << down.err;
}

TEST_F(FaultsTest, CtrlCBringsAForegroundClusterDown) {
  TroupeProgram up(
      Command({"up", "--workers", "1", "--threads", kThreads, "--foreground"}));
  ASSERT_NE(up.WaitForLine("Ctrl-C"), "");
  const pid_t worker = WorkerPid("worker-0");
  EXPECT_TRUE(IsRunning(int64_t{worker}));
  up.Signal(SIGINT);
  EXPECT_EQ(up.Wait().code, 0);
  EXPECT_FALSE(IsRunning(int64_t{worker}));
}

// Longer than a lease. TROUPE_PAUSE_SECONDS=40 is longer than gRPC's patience
// with a connection that was not told otherwise, too.
TEST_F(FaultsTest, ASchedulerThatIsPausedLosesNoWorker) {
  Up(2);
  const auto job = StartEndless();
  const pid_t scheduler = WorkerPid("scheduler");
  const int64_t before = Describe(1)["steps_done"];
  ASSERT_EQ(kill(scheduler, SIGSTOP), 0);
  const char* const asked = std::getenv("TROUPE_PAUSE_SECONDS");
  absl::SleepFor(absl::Seconds(asked != nullptr ? std::atoi(asked) : 8));
  ASSERT_EQ(kill(scheduler, SIGCONT), 0);
  EXPECT_NE(job->WaitForLine(absl::StrCat("step ", before + 200, "/")), "");
  EXPECT_EQ(Describe(1)["state"], "RUNNING") << Describe(1)["reason"];
  EXPECT_EQ(Troupe({"cancel", "1"}).code, 0);
}

TEST_F(FaultsTest, AForegroundClusterSaysWhenSomebodyElseTookItDown) {
  TroupeProgram up(
      Command({"up", "--workers", "1", "--threads", kThreads, "--foreground"}));
  ASSERT_NE(up.WaitForLine("Ctrl-C"), "");
  EXPECT_EQ(Troupe({"down"}).code, 0);
  const Outcome outcome = up.Wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("the scheduler ended; its log is in " + dir()),
            std::string::npos)
      << outcome.err;
}

// SIGTERM is a request: the job is saved first, and goes on from there.
TEST_F(FaultsTest, AWorkerThatIsAskedToEndSavesItsJob) {
  Up(2);
  const std::string checkpoints = "checkpoint.directory=" + dir() + "/saved";
  const int job = Submit({kEndless, checkpoints});
  TroupeProgram watch(Command({"watch", std::to_string(job)}));
  ASSERT_NE(watch.WaitForLine("step 3/"), "");
  ASSERT_EQ(kill(WorkerPid("worker-1"), SIGTERM), 0);
  const Outcome watched = watch.Wait();
  ExpectSaved(watched, "worker-1 (rank 1)");
  const int next = Submit({kEndless, checkpoints, "checkpoint.resume=latest",
                           "parallelism.data=1"});
  TroupeProgram again(Command({"watch", std::to_string(next)}));
  EXPECT_NE(again.WaitForLine("resumed after step "), "");
}

// So is SIGTERM to the scheduler, as where its machine is shut down.
TEST_F(FaultsTest, ASchedulerThatIsAskedToEndHasItsJobsSaved) {
  Up(1);
  const auto job = StartEndless(
      {"checkpoint.directory=" + dir() + "/saved", "parallelism.data=1"});
  const pid_t scheduler = WorkerPid("scheduler");
  ASSERT_EQ(kill(scheduler, SIGTERM), 0);
  const Outcome watched = job->Wait();
  EXPECT_EQ(watched.code, 1);
  ExpectSaved(watched, "the scheduler");
  while (IsRunning(int64_t{scheduler})) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_EQ(Troupe({"down"}).code, 0) << "the worker is left";
  Up(1);
  EXPECT_EQ(Describe(1)["state"], "CANCELLED");
}

}  // namespace
}  // namespace troupe
