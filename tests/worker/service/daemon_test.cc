#include "worker/service/daemon.h"

#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/equivalence/small_job.h"
#include "tests/ops/split_memory_device.h"
#include "tests/worker/service/fake_scheduler.h"
#include "tests/worker/service/small_worker.h"

namespace troupe {
namespace {

bool IsRegister(const WorkerMessage& m) { return m.has_register_(); }
bool IsEnded(const WorkerMessage& m) { return m.has_ended(); }
bool IsStep(const WorkerMessage& m) { return m.has_step(); }
bool IsGoodbye(const WorkerMessage& m) { return m.has_goodbye(); }

MachineReading SomeReading() {
  MachineReading reading;
  reading.set_stolen_share(0.25);
  return reading;
}

// A daemon on its thread.
class Running {
 public:
  explicit Running(const std::string& scheduler)
      : Running(scheduler, NewCpuDevice({.threads = 1})) {}
  Running(const std::string& scheduler, std::unique_ptr<Device> device,
          absl::Duration leaving_answer_max = absl::Minutes(1))
      : worker_(std::move(device)),
        daemon_({.scheduler = scheduler,
                 .trust = {.insecure = 1},
                 .description = worker_.Description(),
                 .address = "127.0.0.1",
                 .machine = [] { return SomeReading(); },
                 .retry_first = absl::Milliseconds(5),
                 .retry_max = absl::Milliseconds(20),
                 .leaving_answer_max = leaving_answer_max},
                Resources()),
        thread_([this] { status_ = daemon_.Run(); }) {}
  ~Running() {
    daemon_.Stop("the test is over");
    if (thread_.joinable()) thread_.join();
  }

  const SmallWorker& worker() const { return worker_; }
  int times_between_steps() const { return between_steps_; }
  void Stop() { daemon_.Stop("enough"); }
  absl::Status Join() {
    thread_.join();
    return status_;
  }

 private:
  RankResources Resources() {
    RankResources resources = worker_.resources();
    resources.between_steps = [this] { ++between_steps_; };
    return resources;
  }

  SmallWorker worker_;
  std::atomic<int> between_steps_{0};
  WorkerDaemon daemon_;
  absl::Status status_;
  std::thread thread_;
};

SchedulerMessage Start(const JobSpec& job, const SmallWorker& worker) {
  SchedulerMessage message;
  *message.mutable_start() = Assign(job, worker);
  return message;
}

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

// It was asked to have the job saved, and died before it answered.
TEST(WorkerDaemon, StopDoesNotWaitForASchedulerThatIsGone) {
  auto scheduler = std::make_unique<FakeScheduler>();
  Running daemon(scheduler->address());
  ASSERT_EQ(scheduler->AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  job.mutable_checkpoint()->set_directory(testing::TempDir() + "/daemon_gone");
  scheduler->Send("ada", Start(job, daemon.worker()));
  ASSERT_GE(scheduler->AwaitMessages(3, IsStep).size(), 3u);
  std::thread stop([&] { daemon.Stop(); });
  const auto leaving = scheduler->AwaitMessages(
      1, [](const WorkerMessage& m) { return m.has_leaving(); });
  EXPECT_EQ(leaving.size(), 1u);
  scheduler = nullptr;
  stop.join();
  EXPECT_TRUE(daemon.Join().ok());
  EXPECT_EQ(daemon.worker().arenas().used(), 0u);
}

bool IsReady(const WorkerMessage& m) { return m.has_rank_ready(); }

SchedulerMessage StoredOf(const RankRef& ref, int64_t step, bool ended) {
  SchedulerMessage message;
  *message.mutable_stored()->mutable_ref() = ref;
  message.mutable_stored()->set_step(step);
  message.mutable_stored()->set_ready(true);
  message.mutable_stored()->set_ended(ended);
  return message;
}

// Of all steps that two schedulers heard; each may have heard some.
std::map<int64_t, double> LossesOf(const std::vector<WorkerMessage>& before,
                                   const std::vector<WorkerMessage>& after) {
  std::map<int64_t, double> losses;
  for (const auto* heard : {&before, &after}) {
    for (const WorkerMessage& message : *heard) {
      const StepRecord& record = message.step().record();
      const auto [it, is_new] = losses.emplace(record.step(), record.loss());
      EXPECT_TRUE(is_new || it->second == record.loss()) << record.step();
    }
  }
  return losses;
}

// A scheduler dies while the rank trains; the next one hears what it holds and
// all that the first one is not known to have stored.
TEST(WorkerDaemon, ARankOutlivesItsScheduler) {
  constexpr int64_t kSteps = 3000;
  auto scheduler = std::make_unique<FakeScheduler>();
  const std::string address = scheduler->address();
  Running daemon(address);
  ASSERT_EQ(scheduler->AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(kSteps);
  const SchedulerMessage start = Start(job, daemon.worker());
  scheduler->Send("ada", start);
  ASSERT_GE(scheduler->AwaitMessages(5, IsStep).size(), 5u);
  scheduler->Send("ada", StoredOf(start.start().ref(), 2, false));
  ASSERT_GE(scheduler->AwaitMessages(300, IsStep).size(), 300u);
  scheduler->EndSessions();
  const auto before = scheduler->AwaitMessages(1, IsStep);
  scheduler = nullptr;

  scheduler = std::make_unique<FakeScheduler>(
      FakeScheduler::Options{.address = address});
  const auto registered = scheduler->AwaitMessages(1, IsRegister);
  ASSERT_EQ(registered.size(), 1u);
  const HeldRank& held = registered[0].register_().held();
  EXPECT_EQ(held.ref().job(), 5);
  EXPECT_EQ(held.ref().attempt(), 2);
  EXPECT_EQ(held.fingerprint(), start.start().plan().fingerprint());
  EXPECT_EQ(held.first_step(), 1);
  EXPECT_GE(held.step(), 300);
  const auto ended = scheduler->AwaitMessages(1, IsEnded);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_TRUE(ended[0].ended().ok()) << ended[0].ended().error();
  EXPECT_EQ(scheduler->Count(IsReady), 0u) << "it was stored";
  const auto after = scheduler->AwaitMessages(1, IsStep);
  EXPECT_EQ(after.front().step().record().step(), 3) << "the first not stored";
  EXPECT_EQ(after.size(), static_cast<size_t>(kSteps - 2));
  EXPECT_EQ(LossesOf(before, after).size(), static_cast<size_t>(kSteps));
}

// Its last words wait until a scheduler has them, and no longer.
TEST(WorkerDaemon, LastWordsWaitForTheNextScheduler) {
  auto scheduler = std::make_unique<FakeScheduler>();
  const std::string address = scheduler->address();
  Running daemon(address);
  ASSERT_EQ(scheduler->AwaitMessages(1, IsRegister).size(), 1u);
  const SchedulerMessage start = Start(SmallJob(), daemon.worker());
  scheduler->Send("ada", start);
  ASSERT_EQ(scheduler->AwaitMessages(1, IsEnded).size(), 1u);
  for (const bool stored : {false, true}) {
    scheduler = nullptr;
    scheduler = std::make_unique<FakeScheduler>(
        FakeScheduler::Options{.address = address});
    const auto registered = scheduler->AwaitMessages(1, IsRegister);
    ASSERT_EQ(registered.size(), 1u);
    EXPECT_EQ(registered[0].register_().held().step(), 20);
    EXPECT_EQ(scheduler->AwaitMessages(1, IsEnded).size(), 1u);
    EXPECT_EQ(scheduler->Count(IsStep), 20u);
    if (!stored) continue;
    scheduler->Send("ada", StoredOf(start.start().ref(), 20, true));
    // What comes after it is heard after it.
    scheduler->Send("ada", Start(SmallJob(), daemon.worker()));
    EXPECT_EQ(scheduler->AwaitMessages(2, IsEnded).size(), 2u);
  }
}

TEST(WorkerDaemon, ARankThatIsForgottenEndsAndSaysNothing) {
  auto scheduler = std::make_unique<FakeScheduler>();
  const std::string address = scheduler->address();
  Running daemon(address);
  ASSERT_EQ(scheduler->AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  const SchedulerMessage start = Start(job, daemon.worker());
  scheduler->Send("ada", start);
  ASSERT_GE(scheduler->AwaitMessages(3, IsStep).size(), 3u);
  scheduler = nullptr;

  scheduler = std::make_unique<FakeScheduler>(
      FakeScheduler::Options{.address = address});
  const auto registered = scheduler->AwaitMessages(1, IsRegister);
  ASSERT_EQ(registered.size(), 1u);
  EXPECT_TRUE(registered[0].register_().has_held());
  SchedulerMessage forget;
  *forget.mutable_stop()->mutable_ref() = start.start().ref();
  forget.mutable_stop()->set_reason("job 5 has ended");
  forget.mutable_stop()->set_peers_gone(true);
  forget.mutable_stop()->set_forgotten(true);
  scheduler->Send("ada", forget);
  scheduler->Send("ada", Start(SmallJob(), daemon.worker()));
  const auto ended = scheduler->AwaitMessages(1, IsEnded);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_TRUE(ended[0].ended().ok()) << ended[0].ended().error();
  scheduler = nullptr;
  scheduler = std::make_unique<FakeScheduler>(
      FakeScheduler::Options{.address = address});
  EXPECT_EQ(scheduler->AwaitMessages(1, IsEnded).size(), 1u)
      << "of the second job";
}

TEST(WorkerDaemon, ARankWithoutASchedulerEndsWhenTheWorkerIsStopped) {
  auto scheduler = std::make_unique<FakeScheduler>();
  Running daemon(scheduler->address());
  ASSERT_EQ(scheduler->AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  job.mutable_checkpoint()->set_directory(testing::TempDir() +
                                          "/daemon_orphan");
  scheduler->Send("ada", Start(job, daemon.worker()));
  ASSERT_GE(scheduler->AwaitMessages(3, IsStep).size(), 3u);
  scheduler = nullptr;
  daemon.Stop();
  EXPECT_TRUE(daemon.Join().ok());
  EXPECT_EQ(daemon.worker().arenas().used(), 0u);
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
