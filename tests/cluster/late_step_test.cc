// Steps that do not get on, with real daemons: a worker that is stopped, and
// one that is so slow that all others wait for it.
#include <signal.h>

#include <fstream>
#include <memory>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// Stops a process, as a debugger or a hung disk does, until the end of its
// life.
class Stopped {
 public:
  explicit Stopped(pid_t pid) : pid_(pid) { kill(pid_, SIGSTOP); }
  ~Stopped() { kill(pid_, SIGCONT); }

 private:
  const pid_t pid_;
};

// Lets a process run for one twentieth of the time.
class Slowed {
 public:
  explicit Slowed(pid_t pid)
      : thread_([this, pid] {
          while (!over_.HasBeenNotified()) {
            const Stopped stopped(pid);
            over_.WaitForNotificationWithTimeout(absl::Milliseconds(475));
            kill(pid, SIGCONT);
            over_.WaitForNotificationWithTimeout(absl::Milliseconds(25));
          }
        }) {}
  ~Slowed() {
    over_.Notify();
    thread_.join();
  }

 private:
  absl::Notification over_;
  std::thread thread_;
};

// Four stages that wait instead of computing: a third of a second a step.
constexpr char kPipeline[] = R"(
name: pipeline
model: {architecture: synthetic, units: 4, forward_us: 10000}
training: {steps: 1000000, global_batch_size: 8, micro_batch_size: 1}
parallelism: {pipeline: 4, pipeline_schedule: 1f1b}
)";

class LateStepTest : public ClusterTestBase {
 protected:
  // Submits the tiny job without an end, and follows it until it has taken a
  // few steps.
  std::unique_ptr<TroupeProgram> Start(std::vector<std::string> settings) {
    settings.push_back(kEndless);
    return Follow(SubmitCommand(settings));
  }
  std::unique_ptr<TroupeProgram> StartPipeline() {
    std::ofstream(dir() + "/pipeline.yaml") << kPipeline;
    return Follow({"submit", dir() + "/pipeline.yaml"});
  }
  // The tiny job, slow enough to be slowed.
  void ExpectSlowWorkerNamed(const std::vector<std::string>& settings);

 private:
  std::unique_ptr<TroupeProgram> Follow(std::vector<std::string> command) {
    command.push_back("--watch");
    auto program = std::make_unique<TroupeProgram>(Command(command));
    EXPECT_NE(program->WaitForLine("step 3/"), "");
    return program;
  }
};

TEST_F(LateStepTest, AStoppedWorkerIsNamedAndThenLost) {
  Up(2);
  const auto job = Start({});
  const Stopped stopped(WorkerPid("worker-1"));
  const std::string line = job->WaitForLine("is late");
  EXPECT_THAT(line, HasSubstr(": rank 0 waits in REDUCE_"));
  EXPECT_THAT(line, HasSubstr(" for rank 1; rank 1 has not been heard for "));
  EXPECT_THAT(line, HasSubstr("(worker-1)"));
  const Outcome outcome = job->Wait();
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("worker-1 (rank 1) was lost in step "));
  EXPECT_THAT(outcome.err, HasSubstr("; rank 0 waits in REDUCE_"));
}

TEST_F(LateStepTest, AStoppedStageIsNamedByTheOneThatWaitsForIt) {
  Up(4);
  const auto job = StartPipeline();
  const Stopped stopped(WorkerPid("worker-2"));
  const std::string line = job->WaitForLine("is late");
  EXPECT_THAT(line, HasSubstr(" waits for RECV u"));
  EXPECT_THAT(line, HasSubstr(" from rank 2; rank 2 has not been heard for "));
  EXPECT_THAT(line, HasSubstr("(worker-2)"));
  EXPECT_THAT(job->Wait().err,
              HasSubstr("worker-2 (rank 2) was lost in step "));
}

void LateStepTest::ExpectSlowWorkerNamed(
    const std::vector<std::string>& settings) {
  Up(2);
  const auto job = Start(settings);
  {
    const Slowed slowed(WorkerPid("worker-1"));
    const std::string line = job->WaitForLine("; rank 1 has been in ");
    EXPECT_THAT(line, HasSubstr("is late"));
    // A slow worker does go on: by what it said last, it may have sent already
    // what the other one, which spoke a moment before, waits for.
    EXPECT_THAT(line, AnyOf(HasSubstr(": rank 0 waits "),
                            HasSubstr(": rank 0 has been in RECV ")));
    EXPECT_THAT(line, HasSubstr("(worker-1)"));
  }
  EXPECT_NE(job->WaitForLine(" went on after "), "");
  EXPECT_EQ(Troupe({"cancel", "1"}).code, 0);
}

TEST_F(LateStepTest, ASlowReplicaIsNamedUntilItIsNotSlow) {
  ExpectSlowWorkerNamed(
      {"model.hidden_size=256", "training.global_batch_size=512"});
}

TEST_F(LateStepTest, ASlowStageIsNamedUntilItIsNotSlow) {
  ExpectSlowWorkerNamed({"model.hidden_size=256",
                         "training.global_batch_size=256", "parallelism.data=1",
                         "parallelism.pipeline=2"});
}

}  // namespace
}  // namespace troupe
