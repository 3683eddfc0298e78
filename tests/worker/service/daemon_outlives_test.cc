// A worker whose scheduler goes away, and comes back or does not.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/service/fake_scheduler.h"
#include "tests/worker/service/running_daemon.h"
#include "worker/service/daemon.h"

namespace troupe {
namespace {

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

// A look at a slow disk takes longer than the next scheduler waits for the
// rank. It comes when the worker is free.
TEST(WorkerDaemon, ARankThatComesBackIsNotKeptByALookAtTheMachine) {
  auto scheduler = std::make_unique<FakeScheduler>();
  const std::string address = scheduler->address();
  std::atomic<int> looks{0};
  std::atomic<bool> fit{true};
  Running daemon(address, [&]() -> std::vector<std::string> {
    ++looks;
    if (fit) return {};
    return {"nvme tier: EROFS"};
  });
  ASSERT_EQ(scheduler->AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  const SchedulerMessage start = Start(job, daemon.worker());
  scheduler->Send("ada", start);
  ASSERT_GE(scheduler->AwaitMessages(3, IsStep).size(), 3u);
  EXPECT_EQ(looks, 2) << "as it registered, and as the rank began";
  fit = false;
  scheduler = nullptr;

  scheduler = std::make_unique<FakeScheduler>(
      FakeScheduler::Options{.address = address});
  auto registered = scheduler->AwaitMessages(1, IsRegister);
  ASSERT_EQ(registered.size(), 1u);
  EXPECT_EQ(registered[0].register_().held().ref().job(), 5);
  EXPECT_EQ(registered[0].register_().unfit_size(), 0);
  SchedulerMessage stop;
  *stop.mutable_stop()->mutable_ref() = start.start().ref();
  scheduler->Send("ada", stop);
  const auto ended = scheduler->AwaitMessages(1, IsEnded);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(looks, 2) << "while it holds the rank's last words";
  scheduler->Send("ada",
                  StoredOf(start.start().ref(), ended[0].ended().step(), true));
  registered = scheduler->AwaitMessages(2, IsRegister);
  ASSERT_EQ(registered.size(), 2u);
  ASSERT_EQ(registered[1].register_().unfit_size(), 1);
  EXPECT_EQ(registered[1].register_().unfit(0), "nvme tier: EROFS");
}

// A text that has ended keeps the look from no worker, though nothing is heard
// of the scheduler after it.
TEST(WorkerDaemon, AMachineThatWasNotLookedAtIsLookedAtAfterAText) {
  auto scheduler = std::make_unique<FakeScheduler>();
  const std::string address = scheduler->address();
  std::atomic<bool> fit{true};
  Running daemon(address, [&]() -> std::vector<std::string> {
    if (fit) return {};
    return {"nvme tier: EROFS"};
  });
  ASSERT_EQ(scheduler->AwaitMessages(1, IsRegister).size(), 1u);
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  const SchedulerMessage start = Start(job, daemon.worker());
  scheduler->Send("ada", start);
  ASSERT_GE(scheduler->AwaitMessages(3, IsStep).size(), 3u);
  scheduler = nullptr;

  scheduler = std::make_unique<FakeScheduler>(
      FakeScheduler::Options{.address = address});
  ASSERT_EQ(scheduler->AwaitMessages(1, IsRegister).size(), 1u);
  // Before its rank is known to have ended, so that no look comes between.
  SchedulerMessage generate;
  generate.mutable_generate()->set_request(9);
  generate.mutable_generate()->set_checkpoint("/no/such/checkpoint");
  scheduler->Send("ada", generate);
  const auto is_text = [](const WorkerMessage& m) {
    return m.generated().done();
  };
  ASSERT_EQ(scheduler->AwaitMessages(1, is_text).size(), 1u);
  fit = false;
  SchedulerMessage stop;
  *stop.mutable_stop()->mutable_ref() = start.start().ref();
  scheduler->Send("ada", stop);
  const auto ended = scheduler->AwaitMessages(1, IsEnded);
  ASSERT_EQ(ended.size(), 1u);
  scheduler->Send("ada",
                  StoredOf(start.start().ref(), ended[0].ended().step(), true));
  const auto registered = scheduler->AwaitMessages(2, IsRegister);
  ASSERT_EQ(registered.size(), 2u);
  ASSERT_EQ(registered[1].register_().unfit_size(), 1);
  EXPECT_EQ(registered[1].register_().unfit(0), "nvme tier: EROFS");
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

// A scheduler of another version took the port for a while: it is as if there
// were none.
TEST(WorkerDaemon, ARefusalEndsNoRank) {
  for (const absl::Status& refusal :
       {absl::FailedPreconditionError("another protocol version"),
        absl::InvalidArgumentError("worker.name: is no name"),
        absl::PermissionDeniedError("the certificate is of another worker"),
        absl::AlreadyExistsError("a live worker has the name ada")}) {
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
        FakeScheduler::Options{.address = address, .refusal = refusal});
    // Each attempt is a message; the second one comes after the first refusal.
    ASSERT_EQ(scheduler->AwaitMessages(2, IsRegister).size(), 2u) << refusal;
    scheduler = nullptr;

    scheduler = std::make_unique<FakeScheduler>(
        FakeScheduler::Options{.address = address});
    const auto registered = scheduler->AwaitMessages(1, IsRegister);
    ASSERT_EQ(registered.size(), 1u) << refusal;
    EXPECT_TRUE(registered[0].register_().has_held()) << refusal;
    EXPECT_GE(scheduler->AwaitMessages(3, IsStep).size(), 3u) << refusal;
  }
}

// It says of which cluster its rank is, and a scheduler that refuses it as
// another cluster's changes nothing of that.
TEST(WorkerDaemon, ARankStaysThatOfTheClusterThatGaveIt) {
  auto scheduler = std::make_unique<FakeScheduler>(
      FakeScheduler::Options{.cluster_id = "aaaa"});
  const std::string address = scheduler->address();
  Running daemon(address);
  const auto first = scheduler->AwaitMessages(1, IsRegister);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_FALSE(first[0].register_().has_held());
  JobSpec job = SmallJob();
  job.mutable_training()->set_steps(1'000'000);
  SchedulerMessage start = Start(job, daemon.worker());
  start.mutable_start()->set_run_id("0123");
  scheduler->Send("ada", start);
  ASSERT_GE(scheduler->AwaitMessages(3, IsStep).size(), 3u);
  scheduler = nullptr;
  const absl::Status foreign = absl::FailedPreconditionError("of another one");
  for (const absl::Status& refusal : {foreign, absl::OkStatus()}) {
    scheduler = std::make_unique<FakeScheduler>(FakeScheduler::Options{
        .address = address, .refusal = refusal, .cluster_id = "aaaa"});
    const auto back = scheduler->AwaitMessages(1, IsRegister);
    ASSERT_EQ(back.size(), 1u);
    EXPECT_EQ(back[0].register_().held().cluster_id(), "aaaa");
    EXPECT_EQ(back[0].register_().held().run_id(), "0123");
    if (refusal.ok()) EXPECT_GE(scheduler->AwaitMessages(3, IsStep).size(), 3u);
    scheduler = nullptr;
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

}  // namespace
}  // namespace troupe
