#include "worker/service/daemon.h"

#include <thread>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/equivalence/small_job.h"
#include "tests/ops/split_memory_device.h"
#include "tests/worker/service/fake_scheduler.h"
#include "tests/worker/service/running_daemon.h"

namespace troupe {
namespace {

TEST(WorkerDaemon, RunsOneJobAfterAnother) {
  FakeScheduler scheduler;
  Running daemon(scheduler.address());
  ASSERT_EQ(scheduler.AwaitMessages(1, IsRegister).size(), 1u);
  for (size_t job = 1; job <= 3; ++job) {
    scheduler.Send("ada", Start(SmallJob(), daemon.worker()));
    const auto ended = scheduler.AwaitMessages(job, IsEnded);
    ASSERT_EQ(ended.size(), job);
    EXPECT_TRUE(ended.back().ended().ok()) << ended.back().ended().error();
  }
  EXPECT_EQ(scheduler.Count(IsStep), 60u);
  EXPECT_EQ(daemon.times_between_steps(), 60);
}

TEST(WorkerDaemon, OneThatIsUnfitSaysSoAndRegistersAnewWhenItIsFit) {
  FakeScheduler scheduler;
  std::atomic<bool> fit{false};
  Running daemon(scheduler.address(), [&fit]() -> std::vector<std::string> {
    if (fit) return {};
    return {"nvme tier: EROFS"};
  });
  auto registered = scheduler.AwaitMessages(1, IsRegister);
  ASSERT_EQ(registered.size(), 1u);
  ASSERT_EQ(registered[0].register_().unfit_size(), 1);
  EXPECT_EQ(registered[0].register_().unfit(0), "nvme tier: EROFS");

  // It is given a rank all the same, and answers that another may do it.
  const SchedulerMessage start = Start(SmallJob(), daemon.worker());
  scheduler.Send("ada", start);
  const auto ended = scheduler.AwaitMessages(1, IsEnded);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].ended().ok());
  EXPECT_TRUE(ended[0].ended().local_cause());
  EXPECT_EQ(ended[0].ended().error(),
            "this machine is not fit to run a rank: nvme tier: EROFS");
  fit = true;
  scheduler.Send("ada", StoredOf(start.start().ref(), 0, true));
  registered = scheduler.AwaitMessages(2, IsRegister);
  ASSERT_EQ(registered.size(), 2u);
  EXPECT_EQ(registered[1].register_().unfit_size(), 0);
}

TEST(WorkerDaemon, SaysHowItFindsItsMachine) {
  FakeScheduler scheduler;
  Running daemon(scheduler.address());
  const auto registered = scheduler.AwaitMessages(1, IsRegister);
  ASSERT_EQ(registered.size(), 1u);
  EXPECT_EQ(registered[0].register_().worker().machine().stolen_share(), 0.25);
  const auto beats = scheduler.AwaitMessages(
      2, [](const WorkerMessage& m) { return m.has_heartbeat(); });
  ASSERT_EQ(beats.size(), 2u);
  EXPECT_EQ(beats[1].heartbeat().machine().stolen_share(), 0.25);
}

TEST(WorkerDaemon, HeartbeatsSayWhereTheRankIs) {
  FakeScheduler scheduler;
  Running daemon(scheduler.address());
  ASSERT_EQ(scheduler.AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(100'000);
  job.mutable_training()->clear_validate_every();  // so that it only trains
  scheduler.Send("ada", Start(job, daemon.worker()));
  const auto beats = scheduler.AwaitMessages(3, [](const WorkerMessage& m) {
    return m.heartbeat().progress().step() > 1 &&
           m.heartbeat().progress().lanes_size() > 0;
  });
  ASSERT_GE(beats.size(), 3u);
  for (const WorkerMessage& message : beats) {
    const RankProgress& progress = message.heartbeat().progress();
    EXPECT_EQ(progress.ref().job(), 5);
    EXPECT_EQ(progress.ref().attempt(), 2);
    EXPECT_EQ(progress.program(), Program::TRAIN);
    EXPECT_NE(progress.lanes(0).current().kind(),
              Instruction::KIND_UNSPECIFIED);
    EXPECT_GT(message.heartbeat().memory_bytes(), 0);
  }
}

TEST(WorkerDaemon, StopEndsAJobAndSaysGoodbye) {
  FakeScheduler scheduler;
  Running daemon(scheduler.address());
  ASSERT_EQ(scheduler.AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(100'000);
  scheduler.Send("ada", Start(job, daemon.worker()));
  ASSERT_GE(scheduler.AwaitMessages(3, IsStep).size(), 3u);
  daemon.Stop();
  EXPECT_TRUE(daemon.Join().ok());
  const auto goodbye = scheduler.AwaitMessages(1, IsGoodbye);
  ASSERT_EQ(goodbye.size(), 1u);
  EXPECT_EQ(goodbye[0].goodbye().reason(), "enough");
  EXPECT_EQ(daemon.worker().arenas().used(), 0u);
}

// Asked to end, it says so, goes on until its rank is saved and has ended, and
// only then says goodbye.
TEST(WorkerDaemon, StopSavesAJobThatHasCheckpoints) {
  FakeScheduler scheduler;
  Running daemon(scheduler.address());
  ASSERT_EQ(scheduler.AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(100'000);
  job.mutable_checkpoint()->set_directory(testing::TempDir() + "/daemon_save");
  const SchedulerMessage start = Start(job, daemon.worker());
  scheduler.Send("ada", start);
  ASSERT_GE(scheduler.AwaitMessages(3, IsStep).size(), 3u);
  std::thread stop([&] { daemon.Stop(); });
  const auto leaving = scheduler.AwaitMessages(
      1, [](const WorkerMessage& m) { return m.has_leaving(); });
  ASSERT_EQ(leaving.size(), 1u);
  EXPECT_EQ(leaving[0].leaving().reason(), "enough");
  SchedulerMessage save;
  *save.mutable_stop()->mutable_ref() = start.start().ref();
  save.mutable_stop()->set_checkpoint(true);
  scheduler.Send("ada", save);
  const auto committed = scheduler.AwaitMessages(
      1, [](const WorkerMessage& m) { return m.has_committed(); });
  EXPECT_EQ(committed.size(), 1u);
  stop.join();
  EXPECT_TRUE(daemon.Join().ok());
  EXPECT_EQ(scheduler.AwaitMessages(1, IsEnded).size(), 1u);
  EXPECT_EQ(scheduler.AwaitMessages(1, IsGoodbye).size(), 1u);
}

// Its machine may be gone, and nobody said so.
TEST(WorkerDaemon, StopDoesNotWaitForASchedulerThatIsSilent) {
  FakeScheduler scheduler;
  Running daemon(scheduler.address(), NewCpuDevice({.threads = 1}),
                 absl::Milliseconds(50));
  ASSERT_EQ(scheduler.AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  job.mutable_checkpoint()->set_directory(testing::TempDir() +
                                          "/daemon_silence");
  scheduler.Send("ada", Start(job, daemon.worker()));
  ASSERT_GE(scheduler.AwaitMessages(3, IsStep).size(), 3u);
  scheduler.Pause(true);
  daemon.Stop();
  EXPECT_TRUE(daemon.Join().ok());
  EXPECT_EQ(daemon.worker().arenas().used(), 0u);
  scheduler.Pause(false);
}

TEST(WorkerDaemon, ARefusalIsFinal) {
  for (const absl::Status& refusal :
       {absl::AlreadyExistsError("a live worker has the name ada"),
        absl::FailedPreconditionError("another protocol version")}) {
    FakeScheduler scheduler({.refusal = refusal});
    Running daemon(scheduler.address());
    EXPECT_EQ(daemon.Join(), refusal);
  }
}

TEST(WorkerDaemon, CanBeStoppedWhileItLooksForAScheduler) {
  std::string address;
  {
    FakeScheduler gone;
    address = gone.address();
  }
  Running daemon(address);
  daemon.Stop();
  EXPECT_TRUE(daemon.Join().ok());
}

TEST(WorkerDaemon, AGenerationThatFailsSaysSo) {
  FakeScheduler scheduler;
  Running daemon(scheduler.address());
  ASSERT_EQ(scheduler.AwaitMessages(1, IsRegister).size(), 1u);
  SchedulerMessage message;
  message.mutable_generate()->set_request(9);
  message.mutable_generate()->set_checkpoint("/no/such/checkpoint");
  scheduler.Send("ada", message);
  const auto generated = scheduler.AwaitMessages(
      1, [](const WorkerMessage& m) { return m.has_generated(); });
  ASSERT_EQ(generated.size(), 1u);
  EXPECT_EQ(generated[0].generated().request(), 9);
  EXPECT_TRUE(generated[0].generated().done());
  EXPECT_NE(generated[0].generated().error().find("/no/such/checkpoint"),
            std::string::npos);
}

TEST(WorkerDaemon, ACheckpointThatCannotBeReadIsAnAnswer) {
  FakeScheduler scheduler;
  Running daemon(scheduler.address());
  ASSERT_EQ(scheduler.AwaitMessages(1, IsRegister).size(), 1u);
  SchedulerMessage message;
  message.mutable_read_job()->set_request(9);
  message.mutable_read_job()->set_checkpoint("/no/such/checkpoint");
  scheduler.Send("ada", message);
  const auto read = scheduler.AwaitMessages(
      1, [](const WorkerMessage& m) { return m.has_checkpoint_job(); });
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].checkpoint_job().request(), 9);
  EXPECT_NE(read[0].checkpoint_job().error().find("/no/such/checkpoint"),
            std::string::npos);
}

bool IsLast(const WorkerMessage& m) {
  return m.has_ended() || m.generated().done();
}

// Lends its device, which looks to the worker as a GPU does, to a daemon.
class FailingDevice {
 public:
  explicit FailingDevice(const std::string& scheduler)
      : owned_(std::make_unique<SplitMemoryDevice>(
            CpuDeviceOptions{.threads = 1})),
        device_(*owned_),
        daemon_(scheduler, std::move(owned_)) {}

  SplitMemoryDevice& device() { return device_; }
  Running& daemon() { return daemon_; }

 private:
  std::unique_ptr<SplitMemoryDevice> owned_;
  SplitMemoryDevice& device_;
  Running daemon_;
};

// Begins a job that would go on for long, and lets the device fail under it.
void FailInStep(FakeScheduler& scheduler, FailingDevice& failing,
                const absl::Status& error, bool stays) {
  ASSERT_EQ(scheduler.AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(100'000);
  scheduler.Send("ada", Start(job, failing.daemon().worker()));
  ASSERT_GE(scheduler.AwaitMessages(3, IsStep).size(), 3u);
  failing.device().Fail(error, stays);
}

// What one job could not do is no matter of the next; and of the threads that
// served it nothing is left on the device.
TEST(WorkerDaemon, AJobsErrorOfTheDeviceEndsThatJobOnly) {
  FakeScheduler scheduler;
  FailingDevice failing(scheduler.address());
  FailInStep(scheduler, failing, absl::ResourceExhaustedError("no scratch"),
             /*stays=*/false);
  std::vector<WorkerMessage> ended = scheduler.AwaitMessages(1, IsEnded);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].ended().ok());
  EXPECT_NE(ended[0].ended().error().find("no scratch"), std::string::npos)
      << ended[0].ended().error();
  EXPECT_EQ(failing.device().queues(), 0);
  for (size_t job = 2; job <= 3; ++job) {
    scheduler.Send("ada", Start(SmallJob(), failing.daemon().worker()));
    ended = scheduler.AwaitMessages(job, IsEnded);
    ASSERT_EQ(ended.size(), job);
    EXPECT_TRUE(ended.back().ended().ok()) << ended.back().ended().error();
    EXPECT_EQ(failing.device().queues(), 0);
  }
  EXPECT_EQ(failing.daemon().worker().arenas().used(), 0u);
}

// It says that it takes nothing new, then how the job ended, then goodbye; and
// its process has the reason.
TEST(WorkerDaemon, LeavesWithADeviceThatIsOfNoUseAnyMore) {
  FakeScheduler scheduler;
  FailingDevice failing(scheduler.address());
  const absl::Status illegal =
      absl::InternalError("cuda:0: an illegal memory access");
  FailInStep(scheduler, failing, illegal, /*stays=*/true);
  EXPECT_EQ(failing.daemon().Join(), illegal);
  const auto last = scheduler.AwaitMessages(3, [](const WorkerMessage& m) {
    return m.has_leaving() || m.has_ended() || m.has_goodbye();
  });
  ASSERT_EQ(last.size(), 3u);
  EXPECT_EQ(last[0].leaving().reason(), illegal.message());
  EXPECT_FALSE(last[0].leaving().has_ref());
  EXPECT_FALSE(last[1].ended().ok());
  EXPECT_NE(last[1].ended().error().find("an illegal memory access"),
            std::string::npos);
  EXPECT_EQ(last[2].goodbye().reason(), illegal.message());
}

TEST(WorkerDaemon, ATextsErrorOfTheDeviceIsTreatedAlike) {
  for (const bool stays : {false, true}) {
    FakeScheduler scheduler;
    FailingDevice failing(scheduler.address());
    ASSERT_EQ(scheduler.AwaitMessages(1, IsRegister).size(), 1u);
    failing.device().Fail(absl::InternalError("the GPU fell off"), stays);
    SchedulerMessage message;
    message.mutable_generate()->set_request(9);
    message.mutable_generate()->set_checkpoint("/no/such/checkpoint");
    scheduler.Send("ada", message);
    ASSERT_EQ(scheduler.AwaitMessages(1, IsLast).size(), 1u);
    if (stays) {
      EXPECT_EQ(failing.daemon().Join(),
                absl::InternalError("the GPU fell off"));
      EXPECT_EQ(scheduler.AwaitMessages(1, IsGoodbye).size(), 1u);
      continue;
    }
    scheduler.Send("ada", Start(SmallJob(), failing.daemon().worker()));
    const auto ended = scheduler.AwaitMessages(1, IsEnded);
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_TRUE(ended[0].ended().ok()) << ended[0].ended().error();
  }
}

}  // namespace
}  // namespace troupe
