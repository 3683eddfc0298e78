// A scheduler that was started again, and jobs that go on from copies then.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/run_control.h"
#include "tests/scheduler/cluster/recovery_harness.h"
#include "tests/scheduler/cluster/restart_harness.h"

namespace troupe {
namespace {

HeldRank Keeping(HeldRank held, const std::vector<int64_t>& steps) {
  for (const int64_t step : steps) {
    KeptCopy& kept = *held.add_kept();
    kept.mutable_state()->set_step(step);
    kept.set_own(true);
  }
  return held;
}

int EndsStored(const Harness& h, WorkerId to) {
  int ends = 0;
  for (const SchedulerMessage& message : h.Sent(to)) {
    ends += message.stored().ended();
  }
  return ends;
}

// Two workers run a job that recovers, and has finished five steps.
class RunAdoptRecover : public testing::Test {
 protected:
  RunAdoptRecover() : on_(before_.JoinMany(2)), id_(before_.Recovering(on_)) {
    for (int64_t step = 1; step <= 5; ++step) before_.AllStep(id_, on_, step);
  }
  // Rank 0's worker comes back, and rank 1's.
  std::vector<WorkerId> BothComeBack(RecoveryHarness& h) const {
    return {ComeBack(h, "w0", HeldOf(id_, 0, 1, 5)),
            ComeBack(h, "w1", HeldOf(id_, 1, 1, 5))};
  }

  // Of what ranks were handed the store has nothing.
  void RestoreWithoutHandOut(RecoveryHarness& h) const {
    std::vector<StoredJob> stored = StoredBy(before_);
    stored[0].hand_out = nullptr;
    h.cluster.Restore(std::move(stored), h.now, h.actions);
  }

  RecoveryHarness before_;
  std::vector<WorkerId> on_;
  JobId id_;
};

TEST_F(RunAdoptRecover, AWorkerThatIsLostLaterIsReplacedAndCopiesAreLeft) {
  const auto h = Restarted(before_);
  const std::vector<WorkerId> back = BothComeBack(*h);
  EXPECT_EQ(h->status(id_).state(), RUNNING);
  const WorkerId w2 = h->Join("w2");
  h->AllStep(id_, back, 6);
  h->Disconnect(back[1], "connection closed");
  EXPECT_EQ(h->status(id_).state(), RECOVERING);
  h->EndsKeeping(id_, 0, back[0], {5, 6});
  EXPECT_EQ(h->status(id_).reason(),
            "attempt 2 from copies of step 6; w2 takes rank 1; before it, w1 "
            "(rank 1) was lost in step 7: connection closed");
  const Assignment begun = h->Begun(w2);
  EXPECT_EQ(begun.ref().attempt(), 2);
  EXPECT_EQ(begun.recovery().state().step(), 6);
  EXPECT_EQ(begun.recovery().handovers_size(), 1);
  EXPECT_EQ(begun.plan().roles_size(), 1) << "with its programs";
  h->AllReady(id_, {back[0], w2}, 7);
}

// One that came back to a scheduler that had to give the other up.
TEST_F(RunAdoptRecover, WhoDoesNotComeBackIsReplaced) {
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 5));
  const WorkerId w1 = h->Join("w1");
  EXPECT_EQ(h->status(id_).state(), RECOVERING);
  EXPECT_EQ(h->status(id_).reason(),
            "the scheduler restarted, and w1 (rank 1) came back without its "
            "rank in step 6: its process was started again (it is process 1 "
            "now)");
  h->EndsKeeping(id_, 0, w0, {5});
  EXPECT_EQ(h->Begun(w1).recovery().state().step(), 5);
  EXPECT_EQ(h->Begun(w1).ref().attempt(), 2);
}

// All had let go, and the job waited for a worker.
TEST_F(RunAdoptRecover, AJobThatWaitedForAWorkerGoesOnFromCopies) {
  before_.Disconnect(on_[1], "connection closed");
  before_.EndsKeeping(id_, 0, on_[0], {4, 5});
  ASSERT_TRUE(absl::StrContains(before_.status(id_).reason(),
                                "waits for 1 idle worker"));
  const auto h = Restarted(before_);
  EXPECT_EQ(h->status(id_).state(), RECOVERING);
  const WorkerId w1 = h->Join("w1");
  EXPECT_EQ(h->worker(w1).state(), WorkerStatus::IDLE)
      << "rank 0 may have to say something yet";
  const WorkerId w0 = ComeBack(*h, "w0", Keeping(HeldOf(id_, 0, 1, 5), {4, 5}));
  EXPECT_EQ(h->status(id_).state(), RECOVERING);
  h->EndsKeeping(id_, 0, w0, {4, 5});
  EXPECT_EQ(h->status(id_).reason(),
            "attempt 2 from copies of step 5; w1 takes rank 1; before it, w1 "
            "(rank 1) was lost in step 6: connection closed");
  EXPECT_EQ(h->Begun(w0).recovery().state().step(), 5);
  h->AllReady(id_, {w0, w1}, 6);
}

// How long it stood still only the scheduler before knows.
TEST_F(RunAdoptRecover, AStopBeforeTheRestartIsNotTimed) {
  before_.Disconnect(on_[1], "connection closed");
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 5));
  h->EndsKeeping(id_, 0, w0, {4});
  h->Pass(AfterAdoptMax(), {w0});
  const WorkerId w2 = h->Join("w2");
  h->AllReady(id_, {w0, w2}, 5);
  EXPECT_EQ(h->job(id_).events.back().text(),
            "recovered: goes on with step 5, 1 run again");
}

// Nor where another is lost before it goes on.
TEST_F(RunAdoptRecover, NorIsOneThatLosesAnotherBeforeItGoesOn) {
  before_.Disconnect(on_[1], "connection closed");
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 5));
  h->EndsKeeping(id_, 0, w0, {5});
  h->Pass(AfterAdoptMax(), {w0});
  const auto replaced = [&](const std::string& name) {
    const WorkerId by = h->Join(name);
    h->Tick(absl::Seconds(1));
    return by;
  };
  const auto lost = [&](WorkerId worker, int64_t step) {
    h->Disconnect(worker, "connection closed");
    h->EndsKeeping(id_, 0, w0, {step});
  };
  lost(replaced("w2"), 5);
  const WorkerId w3 = replaced("w3");
  h->AllReady(id_, {w0, w3}, 6);
  EXPECT_EQ(h->job(id_).events.back().text(), "recovered: goes on with step 6");
  EXPECT_EQ(h->status(id_).stood_seconds(), 0);
  h->AllStep(id_, {w0, w3}, 6);
  lost(w3, 6);
  h->AllReady(id_, {w0, replaced("w4")}, 7);
  EXPECT_EQ(h->status(id_).stood_seconds(), 1) << "that is known";
}

// It was told to stop, and may not have heard that.
TEST_F(RunAdoptRecover, WhoHadToLetGoIsToldAgain) {
  before_.Disconnect(on_[1], "connection closed");
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 5));
  ASSERT_TRUE(h->Sent(w0).back().has_stop());
  EXPECT_TRUE(h->Sent(w0).back().stop().peers_gone());
  h->EndsKeeping(id_, 0, w0, {5});
  const WorkerId w2 = h->Join("w2");
  EXPECT_EQ(h->worker(w2).state(), WorkerStatus::IDLE) << "w1 may come back";
  h->Pass(AfterAdoptMax(), {w0, w2});
  EXPECT_EQ(h->Begun(w2).recovery().state().step(), 5);
  EXPECT_TRUE(absl::StrContains(h->status(id_).reason(),
                                "before it, w1 (rank 1) was lost in step 6"))
      << h->status(id_).reason();
}

// The next attempt was on the disk, and its ranks had not heard of it.
TEST_F(RunAdoptRecover, AnAttemptOfWhichNobodyHeardIsFollowedByAnother) {
  before_.Join("w2");
  before_.Disconnect(on_[1], "connection closed");
  before_.stored_by_hand = true;
  before_.EndsKeeping(id_, 0, on_[0], {4, 5});
  ASSERT_EQ(before_.status(id_).attempt(), 2);
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", Keeping(HeldOf(id_, 0, 1, 5), {4, 5}));
  EXPECT_EQ(h->worker(w0).job(), id_.value());
  EXPECT_EQ(ForgottenFor(*h, w0), "");
  EXPECT_EQ(h->status(id_).reason(),
            "the scheduler restarted before w0 (rank 0) had heard of "
            "attempt 2");
  const WorkerId w2 = h->Join("w2");
  EXPECT_EQ(h->status(id_).attempt(), 3);
  EXPECT_EQ(h->Begun(w0).recovery().state().step(), 5);
  EXPECT_EQ(h->Begun(w2).ref().attempt(), 3);
  h->AllReady(id_, {w0, w2}, 6);
  EXPECT_EQ(h->job(id_).events.back().text(), "recovered: goes on with step 6")
      << "how long it stood still is not known";
  EXPECT_EQ(h->status(id_).restarts(), 1) << "nor has that attempt done a step";
  h->EndsKeeping(id_, 1, w2, {5}, "step 6: not finite");
  h->EndsKeeping(id_, 0, w0, {5});
  EXPECT_EQ(h->status(id_).state(), RECOVERING) << "its first own failure";
}

// One had heard of it, and the other had not.
TEST_F(RunAdoptRecover, AnAttemptOfWhichSomeHeardIsFollowedByAnother) {
  before_.EndsKeeping(id_, 1, on_[1], {4, 5}, "step 6: bad luck");
  before_.EndsKeeping(id_, 0, on_[0], {4, 5});
  ASSERT_EQ(before_.status(id_).attempt(), 2);
  const auto h = Restarted(before_);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 0, 0, 2));
  const WorkerId w0 = ComeBack(*h, "w0", Keeping(HeldOf(id_, 0, 1, 5), {4, 5}));
  EXPECT_TRUE(h->Sent(w1).back().has_stop());
  h->EndsKeeping(id_, 1, w1, {5});
  EXPECT_EQ(h->status(id_).attempt(), 3);
  for (const WorkerId on : {w0, w1}) {
    EXPECT_EQ(h->Begun(on).recovery().state().step(), 5);
  }
}

TEST_F(RunAdoptRecover, AnAttemptOfWhichAllHeardGoesOn) {
  before_.EndsKeeping(id_, 1, on_[1], {4, 5}, "step 6: bad luck");
  before_.EndsKeeping(id_, 0, on_[0], {4, 5});
  const auto h = Restarted(before_);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 0, 0, 2));
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 6, 5, 2));
  EXPECT_EQ(h->status(id_).state(), RECOVERING);
  EXPECT_TRUE(absl::StrContains(h->status(id_).reason(), "attempt 2 from"));
  h->AllReady(id_, {w0, w1}, 6);
  EXPECT_EQ(h->job(id_).events.back().text(), "recovered: goes on with step 6");
  h->AllStep(id_, {w0, w1}, 6);
  EXPECT_EQ(h->status(id_).steps_done(), 6);
}

// Of which only the scheduler before had heard, from one rank.
TEST_F(RunAdoptRecover, StepsThatWillNotRunAgainAreSaidAgain) {
  before_.Step(id_, 0, on_[0], 6);
  before_.Disconnect(on_[1], "connection closed");
  before_.EndsKeeping(id_, 0, on_[0], {6});
  EXPECT_EQ(EndsStored(before_, on_[0]), 0) << "it would forget step 6";
  const auto h = Restarted(before_);
  EXPECT_EQ(h->status(id_).steps_done(), 5);
  const WorkerId w0 = ComeBack(*h, "w0", Keeping(HeldOf(id_, 0, 1, 6), {6}));
  h->Step(id_, 0, w0, 6);
  h->EndsKeeping(id_, 0, w0, {6});
  const WorkerId w1 = h->Join("w1");
  EXPECT_EQ(h->status(id_).steps_done(), 6);
  h->AllReady(id_, {w0, w1}, 7);
}

// Or are in the checkpoint from which it goes on.
TEST_F(RunAdoptRecover, StepsThatAreInTheCheckpointAreClosed) {
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 6));
  h->Step(id_, 0, w0, 6);
  h->Commits(id_, w0, 6);
  h->Pass(AfterAdoptMax(), {w0});
  h->EndsKeeping(id_, 0, w0, {});
  EXPECT_EQ(h->status(id_).steps_done(), 6) << "while the job waits, too";
  EXPECT_EQ(h->Begun(h->Join("w1")).resume(), "/c/step-6");
}

// A rank that has done all stays for the others, also past a restart.
TEST_F(RunAdoptRecover, WhoHasDoneAllKeepsItsCopies) {
  before_.Ended(id_, 0, on_[0], {});
  const auto h = Restarted(before_);
  EXPECT_EQ(h->status(id_).reason(),
            "the scheduler restarted; waits for w0, w1");
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 1, 5));
  const WorkerId w0 = ComeBack(*h, "w0", Keeping(HeldOf(id_, 0, 1, 10), {9}));
  h->EndsKeeping(id_, 0, w0, {9});
  h->Disconnect(w1, "connection closed");
  EXPECT_EQ(h->status(id_).state(), RECOVERING);
  const WorkerId w2 = h->Join("w2");
  EXPECT_EQ(h->Begun(w2).recovery().state().step(), 9);
}

TEST_F(RunAdoptRecover, WhoHasDoneAllNeedNotComeBack) {
  before_.Ended(id_, 0, on_[0], {});
  const auto h = Restarted(before_);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 1, 5));
  h->Pass(AfterAdoptMax(), {w1});
  EXPECT_EQ(h->status(id_).state(), RUNNING);
  EXPECT_EQ(h->status(id_).reason(), "");
  h->Ended(id_, 1, w1, {});
  EXPECT_EQ(h->status(id_).state(), SUCCEEDED) << h->status(id_).reason();
  EXPECT_EQ(EndsStored(*h, w1), 1);
}

// At the end of the job nothing of its ranks is needed any more.
TEST_F(RunAdoptRecover, EndsAreAcknowledgedWhenNoAttemptFollows) {
  before_.Ended(id_, 0, on_[0], {});
  EXPECT_EQ(EndsStored(before_, on_[0]), 0);
  before_.Ended(id_, 1, on_[1], {});
  EXPECT_EQ(before_.status(id_).state(), SUCCEEDED);
  for (const WorkerId on : on_) EXPECT_EQ(EndsStored(before_, on), 1);
}

// Copies of an attempt that another has followed, which ran, are of another
// past.
TEST_F(RunAdoptRecover, WhoMissedAnAttemptThatRanIsForgotten) {
  before_.Disconnect(on_[1], "connection closed");
  before_.EndsKeeping(id_, 0, on_[0], {4, 5});
  const WorkerId w1 = before_.Join("w1");
  before_.AllReady(id_, {on_[0], w1}, 6);
  const auto h = Restarted(before_);
  EXPECT_FALSE(
      ForgottenFor(*h, ComeBack(*h, "w1", Keeping(HeldOf(id_, 1), {5})))
          .empty());
}

TEST_F(RunAdoptRecover, OlderCopiesAreDroppedWhereTheAttemptHasRun) {
  before_.Disconnect(on_[1], "connection closed");
  before_.EndsKeeping(id_, 0, on_[0], {4, 5});
  const WorkerId w1 = before_.Join("w1");
  before_.AllReady(id_, {on_[0], w1}, 6);
  before_.AllStep(id_, {on_[0], w1}, 6);
  before_.EndsKeeping(id_, 1, w1, {6}, "bad luck");
  const auto h = Restarted(before_);
  const WorkerId other = ComeBack(*h, "w1", Keeping(HeldOf(id_, 1), {6}));
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 6, 6, 2));
  h->EndsKeeping(id_, 0, w0, {6});
  EXPECT_EQ(h->Forgotten(other), std::vector<int>{1});
  EXPECT_EQ(h->Begun(other).recovery().handovers(0).to(), 1)
      << "it has nothing that counts";
}

// It was cancelled, and its scheduler died before it could write that.
TEST_F(RunAdoptRecover,
       StepsThatAreLostToAStopOfTheSchedulerBeforeCostARestart) {
  const auto h = Restarted(before_);
  h->cluster.Drain("asked to end", h->now, h->actions);
  const std::vector<WorkerId> back = BothComeBack(*h);
  h->Ended(id_, 0, back[0],
           {.ok = false, .error = "cancelled", .step = 5, .stopped = true});
  EXPECT_EQ(h->status(id_).restarts(), 0) << "rank 1 may know more";
  h->Ended(id_, 1, back[1],
           {.ok = false, .error = "cancelled", .step = 5, .stopped = true});
  EXPECT_EQ(h->status(id_).state(), QUEUED);
  EXPECT_TRUE(absl::StrContains(
      h->job(id_).events.back().text(),
      "w0 (rank 0) was stopped after step 5, which is not saved: cancelled"))
      << h->job(id_).events.back().text();
  EXPECT_EQ(h->status(id_).restarts(), 1);
}

// A scheduler that is asked to end has jobs saved, for the next one to go on.
TEST_F(RunAdoptRecover, WhoDoesNotComeBackToBeSavedIsLost) {
  const auto h = Restarted(before_);
  h->cluster.Drain("asked to end", h->now, h->actions);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 5));
  EXPECT_TRUE(h->Sent(w0).back().stop().checkpoint());
  h->Join("w1");
  EXPECT_TRUE(h->Sent(w0).back().stop().peers_gone());
  EXPECT_EQ(h->status(id_).state(), RECOVERING);
  h->EndsKeeping(id_, 0, w0, {5});
  EXPECT_EQ(h->Asked(w0).back().state().step(), 5);
  h->Saved(w0);
  h->Saved(w0);
  EXPECT_EQ(h->status(id_).state(), QUEUED);
}

// What a worker does that has not heard of the restart is nothing to those that
// have.
TEST_F(RunAdoptRecover, CopiesAreSavedUnderANameOfTheirSchedulerAlone) {
  before_.cluster.Drain("asked to end", before_.now, before_.actions);
  before_.Disconnect(on_[1], "connection closed");
  before_.EndsKeeping(id_, 0, on_[0], {5});
  ASSERT_EQ(before_.Asked(on_[0]).size(), 1);
  const auto h = Restarted(before_);
  h->cluster.Drain("asked to end", h->now, h->actions);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 5));
  h->Join("w1");
  h->EndsKeeping(id_, 0, w0, {5});
  ASSERT_EQ(h->Asked(w0).size(), 1);
  EXPECT_NE(h->Asked(w0)[0].token(), before_.Asked(on_[0])[0].token());
}

// Its user was promised that.
TEST_F(RunAdoptRecover, ACancelIsNotForgottenWithTheHandOut) {
  before_.Disconnect(on_[1], "connection closed");
  EXPECT_TRUE(
      before_.cluster.SaveAndCancel(id_, before_.now, before_.actions).ok());
  RecoveryHarness h;
  RestoreWithoutHandOut(h);
  EXPECT_EQ(h.status(id_).state(), CANCELLED);
  EXPECT_EQ(h.status(id_).reason(),
            "cancelled by its user after step 5; it could not be saved");
}

TEST(RunAdoptRecoverUsedUp, AnAttemptOfWhichNobodyHeardCostsNoRestart) {
  RecoveryHarness before;
  const std::vector<WorkerId> on = before.JoinMany(2);
  const JobId id = before.Recovering(on, /*restarts=*/1);
  before.AllStep(id, on, 1);
  before.Join("w2");
  before.Disconnect(on[1], "connection closed");
  before.stored_by_hand = true;
  before.EndsKeeping(id, 0, on[0], {1});
  ASSERT_EQ(before.status(id).attempt(), 2);
  const auto h = Restarted(before);
  const WorkerId w0 = ComeBack(*h, "w0", Keeping(HeldOf(id, 0, 1, 1), {1}));
  const WorkerId w2 = h->Join("w2");
  EXPECT_EQ(h->status(id).attempt(), 3) << h->status(id).reason();
  h->AllReady(id, {w0, w2}, 2);
}

// The job was to be saved, to go on with others.
TEST(RunAdoptRecoverUsedUp, ALossWhileItMovesIsOneTooMany) {
  RecoveryHarness before;
  const std::vector<WorkerId> on = before.JoinMany(2);
  const JobId id = before.Recovering(on, /*restarts=*/0);
  before.AllStep(id, on, 1);
  before.Leaves(id, 1, on[1]);
  const auto h = Restarted(before);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id, 0, 1, 1));
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id, 1, 1, 1));
  EXPECT_EQ(h->status(id).state(), RECOVERING);
  h->Disconnect(w1, "connection closed");
  EXPECT_EQ(h->status(id).state(), STOPPING);
  h->EndsKeeping(id, 0, w0, {1});
  EXPECT_EQ(h->status(id).state(), FAILED);
  EXPECT_EQ(h->Forgotten(w0), std::vector<int>{1});
}

// Its rank has ended, and others are to go on elsewhere: its place is not given
// away in the time in which it may come back.
TEST_F(RunAdoptRecover, AJobThatMovesWaitsForWhoMayComeBack) {
  before_.Ended(id_, 1, on_[1], {});
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 5));
  h->Leaves(id_, 0, w0);
  h->Commits(id_, w0, 5);
  h->EndsKeeping(id_, 0, w0, {5});
  h->Disconnect(w0, "connection closed");
  h->Join("w2");
  EXPECT_EQ(h->status(id_).state(), RECOVERING) << h->status(id_).reason();
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 1, 10));
  h->Ended(id_, 1, w1, {});
  EXPECT_EQ(h->status(id_).state(), STARTING) << h->status(id_).reason();
  EXPECT_EQ(h->status(id_).attempt(), 2);
}

// Without what the ranks were handed the job is compiled anew.
TEST_F(RunAdoptRecover, AJobWhoseHandOutIsLostBeginsAnew) {
  before_.Disconnect(on_[1], "connection closed");
  before_.EndsKeeping(id_, 0, on_[0], {5});
  RecoveryHarness h;
  RestoreWithoutHandOut(h);
  EXPECT_EQ(h.status(id_).state(), QUEUED);
  EXPECT_TRUE(absl::StrContains(h.job(id_).events.back().text(),
                                "the scheduler restarted while the job "
                                "recovered"));
  EXPECT_FALSE(ForgottenFor(h, ComeBack(h, "w0", HeldOf(id_, 0))).empty());
}

TEST_F(RunAdoptRecover, AndIsNotTimedWhereItLosesAnotherInItsStart) {
  before_.Disconnect(on_[1], "connection closed");
  before_.EndsKeeping(id_, 0, on_[0], {5});
  RecoveryHarness h;
  RestoreWithoutHandOut(h);
  const std::vector<WorkerId> w = h.JoinMany(2);
  ASSERT_EQ(h.status(id_).state(), STARTING) << h.status(id_).reason();
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id_, 0, w[0], {});
  h.Tick(absl::Seconds(1));
  const WorkerId w2 = h.Join("w2");
  h.AllReady(id_, {w[0], w2}, 1);
  EXPECT_EQ(h.job(id_).events.back().text(),
            "recovered: goes on with step 1, 5 run again");
  EXPECT_EQ(h.status(id_).stood_seconds(), 0);
}

// Since it lost a worker that had come back.
TEST_F(RunAdoptRecover, AndSaysHowLongItStoodStill) {
  RecoveryHarness h;
  RestoreWithoutHandOut(h);
  const std::vector<WorkerId> back = BothComeBack(h);
  ASSERT_EQ(h.status(id_).state(), RUNNING);
  h.Disconnect(back[1], "connection closed");
  h.EndsKeeping(id_, 0, back[0], {5});
  ASSERT_EQ(h.status(id_).state(), QUEUED) << h.status(id_).reason();
  h.Tick(absl::Seconds(1));
  const WorkerId late = h.Join("w2");
  h.AllReady(id_, {back[0], late}, 1);
  EXPECT_EQ(h.job(id_).events.back().text(),
            "goes on with 2 workers after 1.0 s, with step 1, 5 run again");
  EXPECT_EQ(h.status(id_).stood_seconds(), 1);
}

}  // namespace
}  // namespace troupe
