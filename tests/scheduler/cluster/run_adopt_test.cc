// A scheduler that was started again, and the ranks that trained on meanwhile.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/come_back.h"
#include "scheduler/cluster/run_control.h"
#include "tests/scheduler/cluster/restart_harness.h"

namespace troupe {
namespace {

void Shard(Harness& h, JobId id, int rank, WorkerId from, int64_t step) {
  WorkerMessage message;
  *message.mutable_shard()->mutable_ref() = h.Ref(id, rank);
  message.mutable_shard()->set_step(step);
  message.mutable_shard()->set_write(step);
  h.Send(from, message);
}

void Commit(Harness& h, JobId id, WorkerId from, int64_t step) {
  WorkerMessage message;
  *message.mutable_committed()->mutable_ref() = h.Ref(id, 0);
  CheckpointRecord& record = *message.mutable_committed()->mutable_checkpoint();
  record.set_step(step);
  record.set_path(absl::StrCat("/c/step-", step));
  h.Send(from, message);
}

// Those steps up to which the worker was told that they are stored.
std::vector<int64_t> StepsStored(const Harness& h, WorkerId to) {
  std::vector<int64_t> steps;
  for (const SchedulerMessage& message : h.Sent(to)) {
    if (message.has_stored() && !message.stored().ended()) {
      steps.push_back(message.stored().step());
    }
  }
  return steps;
}

template <typename Is>
int Count(const Harness& h, WorkerId to, const Is& is) {
  int count = 0;
  for (const SchedulerMessage& message : h.Sent(to)) count += is(message);
  return count;
}
int Dones(const Harness& h, WorkerId to) {
  return Count(h, to, [](const auto& message) { return message.has_done(); });
}
int Commits(const Harness& h, WorkerId to) {
  return Count(h, to, [](const auto& message) { return message.has_commit(); });
}
// Two workers run a job that has finished two steps.
class RunAdopt : public testing::Test {
 protected:
  RunAdopt() : on_(before_.JoinMany(2)) {
    JobSpec spec = SpecOf(2);
    spec.mutable_checkpoint()->set_directory("/c");
    id_ = before_.Submit(spec);
    for (int rank : {0, 1}) before_.Ready(id_, rank, on_[rank]);
    for (int64_t step : {1, 2}) {
      for (int rank : {0, 1}) before_.Step(id_, rank, on_[rank], step);
    }
  }

  Harness before_;
  std::vector<WorkerId> on_;
  JobId id_;
};

TEST_F(RunAdopt, AJobGoesOnWhenAllItsWorkersAreBack) {
  // Step 3 was heard of one rank when the scheduler died.
  before_.Step(id_, 1, on_[1], 3);
  const auto h = Restarted(before_);
  EXPECT_EQ(h->status(id_).state(), RUNNING);
  EXPECT_EQ(h->status(id_).reason(),
            "the scheduler restarted; waits for w0, w1");
  h->Tick(absl::Milliseconds(300));
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 1, 4));
  EXPECT_EQ(h->status(id_).reason(), "the scheduler restarted; waits for w0");
  // It says again what it does not know to be stored.
  for (int64_t step : {1, 2, 3, 4}) h->Step(id_, 1, w1, step);
  h->Tick(absl::Milliseconds(500));
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 4));
  EXPECT_EQ(h->status(id_).reason(), "");
  EXPECT_EQ(h->job(id_).events.back().text(),
            "the scheduler restarted; adopted 2 ranks in 0.8 s after step 2");
  EXPECT_EQ(h->worker(w0).job(), id_.value());
  EXPECT_EQ(h->worker(w1).rank(), 1);
  for (int64_t step : {3, 4}) h->Step(id_, 0, w0, step);
  const auto steps = h->All<PersistStep>();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].step.step(), 3);
  EXPECT_EQ(steps[1].step.step(), 4);
  EXPECT_EQ(h->job(id_).steps.size(), 4u);
  h->Pass(absl::Seconds(20), {w0, w1});
  for (int rank : {0, 1}) h->Ended(id_, rank, rank == 0 ? w0 : w1, {});
  EXPECT_EQ(h->status(id_).state(), SUCCEEDED);
}

// One rank says hundreds of steps again before another is even there.
TEST_F(RunAdopt, StepsWaitForAllRanksHoweverManyTheyAre) {
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0));
  for (int64_t step = 1; step <= 500; ++step) h->Step(id_, 0, w0, step);
  EXPECT_EQ(h->All<PersistStep>().size(), 0u);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1));
  for (int64_t step = 3; step <= 500; ++step) h->Step(id_, 1, w1, step);
  const auto steps = h->All<PersistStep>();
  ASSERT_EQ(steps.size(), 498u);
  EXPECT_EQ(steps.back().step.memory_bytes(), 200) << "of both ranks";
}

TEST_F(RunAdopt, WhatIsStoredIsAcknowledged) {
  before_.Tick(absl::Seconds(1));
  EXPECT_EQ(StepsStored(before_, on_[0]), (std::vector<int64_t>{2}));
  before_.stored_by_hand = true;
  before_.ClearActions();
  for (int rank : {0, 1}) before_.Step(id_, rank, on_[rank], 3);
  before_.Tick(absl::Seconds(1));
  EXPECT_TRUE(StepsStored(before_, on_[0]).empty());
  const auto stored = before_.All<SendWhenStored>();
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[1].send.worker, on_[1]);
  EXPECT_EQ(stored[1].send.message.stored().step(), 3);
  EXPECT_TRUE(stored[1].send.message.stored().ready());
  EXPECT_FALSE(stored[1].otherwise.has_value());
  before_.ClearActions();
  before_.Tick(absl::Seconds(2));
  EXPECT_TRUE(before_.All<SendWhenStored>().empty()) << "nothing is new";
}

TEST_F(RunAdopt, AWorkerThatComesWithoutItsRankHasLostIt) {
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0));
  h->ClearActions();
  const WorkerId w1 = h->Join("w1");
  EXPECT_EQ(h->status(id_).state(), STOPPING);
  EXPECT_EQ(
      h->status(id_).reason(),
      "the scheduler restarted, and w1 (rank 1) came back without its rank "
      "in step 3: its process was started again (it is process 1 now); it had "
      "no checkpoint yet");
  ASSERT_EQ(h->Sent(w0).size(), 1u);
  EXPECT_TRUE(h->Sent(w0)[0].stop().peers_gone());
  EXPECT_EQ(h->worker(w1).state(), WorkerStatus::IDLE);
  h->Ended(id_, 0, w0, {.ok = false, .stopped = true});
  EXPECT_EQ(h->status(id_).state(), FAILED);
}

// Nor does the wait begin before the scheduler can be reached: it may load its
// store for long.
TEST_F(RunAdopt, AWorkerHasTheTimeThatOneOfItsAttemptsMayTake) {
  const auto h = Restarted(before_);
  h->Tick(absl::Minutes(1));
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1));
  const absl::Duration before_last =
      std::max(kConnectMax + kRetryHeldMax, kRetryRefusedMax);
  h->Pass(before_last + kConnectMax + kRegisterMax, {w1});
  EXPECT_EQ(h->status(id_).state(), RUNNING);
  EXPECT_EQ(h->status(id_).reason(), "the scheduler restarted; waits for w0");
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0));
  EXPECT_EQ(ForgottenFor(*h, w0), "");
  EXPECT_EQ(h->status(id_).reason(), "");
}

TEST_F(RunAdopt, WhoDoesNotComeInTimeIsLost) {
  const auto h = Restarted(before_);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1));
  h->Pass(AfterAdoptMax(), {w1});
  EXPECT_EQ(h->status(id_).state(), STOPPING);
  EXPECT_TRUE(absl::StrContains(h->status(id_).reason(),
                                "w0 (rank 0) did not come back within 15s"))
      << h->status(id_).reason();
  // It was only late: there is no place for it any more.
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0));
  EXPECT_EQ(ForgottenFor(*h, w0),
            absl::StrCat("job ", id_.value(),
                         " goes on without this worker, which was cut off "
                         "from it"));
  EXPECT_EQ(h->worker(w0).state(), WorkerStatus::IDLE);
  h->Ended(id_, 1, w1, {.ok = false, .stopped = true});
  EXPECT_EQ(h->status(id_).state(), FAILED);
}

TEST_F(RunAdopt, WhatIsNotTheirsIsNotGivenToThem) {
  const auto h = Restarted(before_);
  HeldRank other = HeldOf(id_, 0);
  other.set_fingerprint("of another scheduler");
  EXPECT_TRUE(absl::StrContains(ForgottenFor(*h, ComeBack(*h, "w0", other)),
                                "is another one here"));
  HeldRank old = HeldOf(id_, 1);
  old.mutable_ref()->set_attempt(0);
  EXPECT_TRUE(absl::StrContains(ForgottenFor(*h, ComeBack(*h, "x", old)),
                                "begins anew"));
  EXPECT_TRUE(absl::StrContains(
      ForgottenFor(*h, ComeBack(*h, "y", HeldOf(JobId(77), 0))),
      "there is no job 77"));
  EXPECT_FALSE(ForgottenFor(*h, ComeBack(*h, "z", HeldOf(id_, 1))).empty())
      << "the rank of another worker";
  HeldRank beyond = HeldOf(id_, 9);
  EXPECT_FALSE(ForgottenFor(*h, ComeBack(*h, "u", beyond)).empty());
}

// No worker is there that could say so: the clock does.
TEST_F(RunAdopt, WhenAllAreLostTheNextJobHasItsTurn) {
  const auto h = Restarted(before_);
  JobSpec spec = SpecOf(1);
  spec.mutable_checkpoint()->set_directory("/c");
  const JobId next = h->Submit(spec);
  const WorkerId other = h->Join("w7");
  EXPECT_TRUE(absl::StrContains(h->status(next).reason(),
                                "whose checkpoint.directory is the same"));
  h->Pass(AfterAdoptMax(), {other});
  EXPECT_EQ(h->status(id_).state(), FAILED);
  EXPECT_EQ(h->status(next).state(), STARTING);
}

// A connection that breaks is the end of a worker, as it was; its rank lives,
// and is told.
TEST_F(RunAdopt, AWorkerThatWasCutOffIsToldSo) {
  before_.Disconnect(on_[1], "connection closed");
  before_.ClearActions();
  const WorkerId back = ComeBack(before_, "w1", HeldOf(id_, 1));
  EXPECT_FALSE(ForgottenFor(before_, back).empty());
  EXPECT_EQ(before_.worker(back).state(), WorkerStatus::IDLE);
}

TEST_F(RunAdopt, ACheckpointThatWasBeingWrittenIsCommitted) {
  Shard(before_, id_, 0, on_[0], 2);
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 2));
  Shard(*h, id_, 0, w0, 2);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 1, 2));
  EXPECT_EQ(Commits(*h, w0), 0);
  Shard(*h, id_, 1, w1, 2);
  EXPECT_EQ(Commits(*h, w0), 1);
  Commit(*h, id_, w0, 2);
  EXPECT_EQ(Dones(*h, w0), 1);
  EXPECT_EQ(Dones(*h, w1), 1);
  EXPECT_EQ(h->status(id_).checkpoints_size(), 1);
}

// Of one that was committed each rank hears, also one that says again that it
// has written its shard, and it is listed once.
TEST_F(RunAdopt, ACheckpointThatWasCommittedIsListedOnce) {
  for (int rank : {0, 1}) Shard(before_, id_, rank, on_[rank], 2);
  Commit(before_, id_, on_[0], 2);
  EXPECT_EQ(Dones(before_, on_[1]), 1);
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 2));
  Shard(*h, id_, 0, w0, 2);
  Commit(*h, id_, w0, 2);
  EXPECT_EQ(Dones(*h, w0), 2);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 1, 2));
  Shard(*h, id_, 1, w1, 2);
  EXPECT_EQ(Dones(*h, w1), 1);
  EXPECT_EQ(Commits(*h, w0), 0);
  EXPECT_EQ(h->status(id_).checkpoints_size(), 1);
}

// A disk that is full must not hold a rank up that waits.
TEST_F(RunAdopt, RanksHearOfACommitWhenItIsStoredOrCannotBe) {
  before_.stored_by_hand = true;
  for (int rank : {0, 1}) Shard(before_, id_, rank, on_[rank], 2);
  Commit(before_, id_, on_[0], 2);
  EXPECT_EQ(Dones(before_, on_[0]), 0);
  const auto stored = before_.All<SendWhenStored>();
  ASSERT_FALSE(stored.empty());
  EXPECT_TRUE(stored.back().send.message.has_done());
  EXPECT_FALSE(stored.back().send.message.done().unstored());
  ASSERT_TRUE(stored.back().otherwise.has_value());
  const CheckpointDone& unstored = stored.back().otherwise->done();
  EXPECT_TRUE(unstored.unstored());
  EXPECT_EQ(unstored.step(), 2);
  EXPECT_EQ(unstored.ref().rank(), 1);
}

// That says later, with the steps, that what could not be stored is.
TEST_F(RunAdopt, CommitsAreAcknowledgedWithSteps) {
  for (int rank : {0, 1}) Shard(before_, id_, rank, on_[rank], 2);
  Commit(before_, id_, on_[0], 2);
  for (int rank : {0, 1}) before_.Step(id_, rank, on_[rank], 3);
  before_.Tick(absl::Seconds(1));
  ASSERT_TRUE(before_.Sent(on_[0]).back().has_stored());
  EXPECT_EQ(before_.Sent(on_[0]).back().stored().checkpoint(), 2);
  // As much is known after a restart.
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 3));
  ComeBack(*h, "w1", HeldOf(id_, 1, 1, 3));
  h->Tick(absl::Seconds(1));
  ASSERT_TRUE(h->Sent(w0).back().has_stored());
  EXPECT_EQ(h->Sent(w0).back().stored().checkpoint(), 2);
}

// A scheduler that could store none of them had told so, and died.
TEST_F(RunAdopt, CommitsThatWereNotStoredAreHeardAgain) {
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 9));
  const int64_t stored = h->status(id_).steps_done();
  for (int64_t step = stored + 1; step <= 9; ++step) h->Step(id_, 0, w0, step);
  for (const int64_t step : {3, 6, 9}) Commit(*h, id_, w0, step);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 1, 9));
  for (int64_t step = stored + 1; step <= 9; ++step) {
    EXPECT_EQ(Dones(*h, w0), (step - 1) / 3) << "before step " << step;
    h->Step(id_, 1, w1, step);
  }
  EXPECT_EQ(Dones(*h, w0), 3);
  EXPECT_EQ(Commits(*h, w0), 0);
  ASSERT_EQ(h->status(id_).checkpoints_size(), 3);
  EXPECT_EQ(h->status(id_).checkpoints(2).path(), "/c/step-9");
  // One that had not heard of the last of them.
  EXPECT_EQ(Dones(*h, w1), 3);
  Shard(*h, id_, 1, w1, 9);
  EXPECT_EQ(Dones(*h, w1), 4);
}

// Of a rank that has ended nothing more is awaited, and a step that the others
// say again is complete without it.
TEST_F(RunAdopt, RanksThatHaveEndedAreNotAwaited) {
  before_.Step(id_, 0, on_[0], 10);
  before_.Ended(id_, 0, on_[0], {});
  EXPECT_EQ(before_.Sent(on_[0]).back().stored().ended(), true);
  const auto h = Restarted(before_);
  EXPECT_EQ(h->status(id_).reason(), "the scheduler restarted; waits for w1");
  const WorkerId w0 = h->Join("w0");
  EXPECT_EQ(h->worker(w0).state(), WorkerStatus::IDLE);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 1, 10));
  h->Step(id_, 1, w1, 10);
  h->Ended(id_, 1, w1, {});
  EXPECT_EQ(h->status(id_).state(), SUCCEEDED) << h->status(id_).reason();
  EXPECT_EQ(h->status(id_).steps_done(), 10);
}

TEST_F(RunAdopt, LastWordsThatWereNotStoredAreHeardAgain) {
  const auto h = Restarted(before_);
  for (int rank : {0, 1}) {
    const WorkerId on =
        ComeBack(*h, absl::StrCat("w", rank), HeldOf(id_, rank, 1, 10));
    h->Ended(id_, rank, on, {});
    EXPECT_TRUE(h->Sent(on).back().stored().ended());
    EXPECT_EQ(h->worker(on).state(), WorkerStatus::IDLE);
  }
  EXPECT_EQ(h->status(id_).state(), SUCCEEDED) << h->status(id_).reason();
  // Nobody told it so; its job has ended meanwhile.
  h->Disconnect(h->cluster.workers().Alive()[0]->id, "connection closed");
  EXPECT_EQ(ForgottenFor(*h, ComeBack(*h, "w0", HeldOf(id_, 0, 1, 10))),
            absl::StrCat("job ", id_.value(), " has succeeded"));
}

TEST_F(RunAdopt, AJobThatWasBeingSavedIsSaved) {
  ASSERT_TRUE(
      before_.cluster.SaveAndCancel(id_, before_.now, before_.actions).ok());
  const auto h = Restarted(before_);
  EXPECT_EQ(h->status(id_).state(), STOPPING);
  for (int rank : {0, 1}) {
    const WorkerId on =
        ComeBack(*h, absl::StrCat("w", rank), HeldOf(id_, rank, 1, 2));
    ASSERT_TRUE(h->Sent(on).back().has_stop()) << "perhaps it was not told";
    EXPECT_TRUE(h->Sent(on).back().stop().checkpoint());
    EXPECT_FALSE(h->Sent(on).back().stop().peers_gone());
    if (rank == 1) {
      Shard(*h, id_, 0, h->cluster.workers().Alive()[0]->id, 2);
      Shard(*h, id_, 1, on, 2);
      Commit(*h, id_, h->cluster.workers().Alive()[0]->id, 2);
    }
  }
  for (int rank : {0, 1}) {
    h->Ended(id_, rank, h->cluster.workers().Alive()[rank]->id,
             {.ok = false, .step = 2, .stopped = true});
  }
  EXPECT_EQ(h->status(id_).state(), CANCELLED);
  EXPECT_EQ(h->status(id_).reason(),
            "cancelled by its user after step 2; saved in /c/step-2");
}

TEST_F(RunAdopt, AJobThatWasFailingFailsForItsCause) {
  before_.Ended(id_, 1, on_[1], {.ok = false, .error = "step 3: bad luck"});
  const auto h = Restarted(before_);
  EXPECT_EQ(h->status(id_).state(), STOPPING);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 2));
  EXPECT_TRUE(h->Sent(w0).back().stop().peers_gone());
  h->Ended(id_, 0, w0,
           {.ok = false, .error = "no word from rank 1", .missing_rank = 1});
  EXPECT_EQ(h->status(id_).state(), FAILED);
  EXPECT_TRUE(absl::StrContains(h->status(id_).reason(), "bad luck"))
      << h->status(id_).reason();
}

TEST_F(RunAdopt, AJobCanBeCancelledWhileItWaits) {
  const auto h = Restarted(before_);
  ASSERT_TRUE(h->cluster.Cancel(id_, h->now, h->actions).ok());
  for (int rank : {0, 1}) {
    const WorkerId on =
        ComeBack(*h, absl::StrCat("w", rank), HeldOf(id_, rank, 1, 2));
    EXPECT_TRUE(h->Sent(on).back().has_stop());
    h->Ended(id_, rank, on, {.ok = false, .stopped = true});
  }
  EXPECT_EQ(h->status(id_).state(), CANCELLED);
}

// Jobs that were not there yet.

TEST(RunAdoptStart, AStartGoesOnWhereAllHaveHeardOfIt) {
  Harness before;
  before.JoinMany(2);
  const JobId id = before.Submit(SpecOf(2));
  const auto h = Restarted(before);
  EXPECT_EQ(h->status(id).state(), STARTING);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id, 0, 1));
  h->Ready(id, 0, w0);
  WorkerMessage get;
  *get.mutable_store_get()->mutable_ref() = h->Ref(id, 0);
  get.mutable_store_get()->set_key("address");
  h->Send(w0, get);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id, 1, 0));
  EXPECT_EQ(h->status(id).reason(), "on w0, w1");
  WorkerMessage set;
  *set.mutable_store_set()->mutable_ref() = h->Ref(id, 1);
  set.mutable_store_set()->set_key("address");
  set.mutable_store_set()->set_value("here");
  h->Send(w1, set);
  EXPECT_EQ(h->Sent(w0).back().store_value().value(), "here");
  EXPECT_EQ(h->status(id).state(), STARTING);
  h->Ready(id, 1, w1);
  EXPECT_EQ(h->status(id).state(), RUNNING);
  EXPECT_EQ(h->job(id).attempt, 1);
}

// The scheduler died before all had heard: the job has lost nothing.
TEST(RunAdoptStart, AStartThatNotAllHaveHeardOfBeginsAnew) {
  Harness before;
  before.JoinMany(2);
  const JobId id = before.Submit(SpecOf(2));
  const auto h = Restarted(before);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id, 0, 0));
  h->ClearActions();
  const WorkerId w1 = h->Join("w1");
  EXPECT_TRUE(absl::StrContains(ForgottenFor(*h, w0), "the job begins anew"));
  EXPECT_EQ(h->status(id).state(), STARTING) << "both are idle again";
  EXPECT_EQ(h->job(id).attempt, 2);
  for (int rank : {0, 1}) h->Ready(id, rank, rank == 0 ? w0 : w1);
  EXPECT_EQ(h->status(id).state(), RUNNING);
}

// Another scheduler had told rank 0 to give it up, and died as well.
TEST(RunAdoptStart, AStartWhoseRanksMissEachOtherBeginsAnew) {
  Harness before;
  before.JoinMany(2);
  const JobId id = before.Submit(SpecOf(2));
  const auto h = Restarted(before);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id, 1, 1));
  h->Ready(id, 1, w1);
  h->Ended(id, 1, w1,
           {.ok = false, .error = "no word from rank 0", .missing_rank = 0});
  EXPECT_EQ(h->status(id).state(), QUEUED) << h->status(id).reason();
  h->Join("w0");
  EXPECT_EQ(h->status(id).state(), STARTING);
  EXPECT_EQ(h->job(id).attempt, 2);
}

TEST(RunAdoptStart, AStartThatNobodyComesBackForWaitsAgain) {
  Harness before;
  before.JoinMany(2);
  const JobId id = before.Submit(SpecOf(2));
  const auto h = Restarted(before);
  h->Pass(AfterAdoptMax(), {});
  EXPECT_EQ(h->status(id).state(), QUEUED);
  EXPECT_EQ(h->status(id).reason(), "waits for 2 workers; none is registered");
  EXPECT_TRUE(absl::StrContains(h->job(id).events.back().text(),
                                "w0 (rank 0), w1 (rank 1) did not come back"));
  h->JoinMany(2);
  EXPECT_EQ(h->status(id).state(), STARTING);
}

TEST(RunAdoptStart, JobsInTheQueueAndInCompilationStayThere) {
  Harness before;
  before.by_hand = true;
  const JobId compiled = before.Submit(SpecOf(1));
  const JobId behind = before.Submit(SpecOf(1));
  before.Join("w0");
  ASSERT_EQ(before.All<CompileJob>().size(), 1u);
  const auto h = Restarted(before);
  EXPECT_EQ(h->status(compiled).state(), QUEUED);
  EXPECT_EQ(h->status(behind).state(), QUEUED);
  h->Join("w0");
  EXPECT_EQ(h->status(compiled).state(), STARTING);
  EXPECT_EQ(h->status(behind).state(), QUEUED);
}

}  // namespace
}  // namespace troupe
