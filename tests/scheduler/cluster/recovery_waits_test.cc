// What becomes of a job that lost a worker while it waits: for others, for the
// store, for its ranks to begin.
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/run_control.h"
#include "tests/scheduler/cluster/recovery_harness.h"

namespace troupe {
namespace {

using Attempts = std::vector<int>;

// On w0 and w1, of which w1 is lost and w0 keeps a copy of step 1.
struct Waiting : RecoveryHarness {
  Waiting() {
    w = JoinMany(2);
    id = Recovering(w);
    AllStep(id, w, 1);
    Disconnect(w[1], "connection closed");
    EndsKeeping(id, 0, w[0], {1});
    ClearActions();
  }
  std::vector<WorkerId> w;
  JobId id;
};

TEST(RecoveryWaits, ForAWorkerUntilOneJoins) {
  Waiting h;
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  EXPECT_EQ(h.status(h.id).reason(),
            "waits for 1 idle worker with room for a rank, to take the place "
            "of w1 (rank 1); w1 (rank 1) was lost in step 2: connection "
            "closed");
  h.Pass(absl::Minutes(20), {h.w[0]});
  EXPECT_EQ(h.status(h.id).state(), RECOVERING) << "as long as it takes";
  EXPECT_EQ(h.worker(h.w[0]).job(), h.id.value());
  const JobId other = h.Submit(SpecOf(1));
  EXPECT_EQ(h.status(other).state(), QUEUED) << "w0 is held";
  const WorkerId late = h.Join("w2");
  EXPECT_EQ(h.Begun(late).ref().job(), h.id.value()) << "before the queue";
  EXPECT_EQ(h.Begun(late).recovery().state().step(), 1);
  h.AllReady(h.id, {h.w[0], late}, 2);
  EXPECT_EQ(h.status(other).state(), QUEUED);
}

TEST(RecoveryWaits, AndIsCancelled) {
  for (const bool saved : {false, true}) {
    Waiting h;
    if (saved) {
      EXPECT_TRUE(h.cluster.SaveAndCancel(h.id, h.now, h.actions).ok());
      EXPECT_EQ(h.status(h.id).state(), RECOVERING) << "copies are saved first";
      h.Saved(h.w[0]);
      h.Saved(h.w[0]);
    } else {
      EXPECT_TRUE(h.cluster.Cancel(h.id, h.now, h.actions).ok());
    }
    EXPECT_EQ(h.status(h.id).state(), CANCELLED);
    EXPECT_EQ(h.status(h.id).reason(),
              saved ? "cancelled by its user after step 1; saved in /c/copies"
                    : "after step 1");
    EXPECT_EQ(h.Forgotten(h.w[0]), Attempts{1});
    EXPECT_EQ(h.worker(h.w[0]).state(), WorkerStatus::IDLE);
    EXPECT_EQ(h.job(h.id).run, nullptr);
    const WorkerId late = h.Join("w2");
    EXPECT_EQ(h.worker(late).state(), WorkerStatus::IDLE);
  }
}

TEST(RecoveryWaits, AndIsQueuedForTheNextScheduler) {
  Waiting h;
  h.cluster.Drain("the scheduler was asked to end", h.now, h.actions);
  h.Saved(h.w[0]);
  h.Saved(h.w[0]);
  EXPECT_EQ(h.status(h.id).state(), QUEUED);
  EXPECT_EQ(h.status(h.id).checkpoints(0).path(), "/c/copies");
  EXPECT_EQ(h.Forgotten(h.w[0]), Attempts{1});
}

TEST(RecoveryWaits, IsQueuedSoInItsNextStartToo) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(2);
  const JobId id = h.Submit(RecoveringSpec(2));
  h.cluster.Drain("the scheduler was asked to end", h.now, h.actions);
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  h.EndsKeeping(id, 0, w[0], {});
  h.EndsKeeping(id, 1, w[1], {});
  EXPECT_EQ(h.status(id).state(), QUEUED) << h.status(id).reason();
}

// A start is given up for it, and what that was to go on from is saved.
struct SavedInItsStart : Waiting {
  SavedInItsStart() {
    late = Join("w2");
    cluster.Drain("the scheduler was asked to end", now, actions);
    EndsKeeping(id, 1, late, {1});
    EndsKeeping(id, 0, w[0], {1});
    CHECK_EQ(Asked(w[0]).size(), 1u);
  }
  void AllSaved() {
    Saved(w[0]);
    Saved(late);
    Saved(w[0]);
  }
  WorkerId late;
};

TEST(RecoveryWaits, ForADiskThatIsSlowToTakeCopies) {
  SavedInItsStart h;
  const std::string saves = h.status(h.id).reason();
  h.Pass(absl::Minutes(5), {h.w[0], h.late});  // longer than a hang
  EXPECT_EQ(h.status(h.id).reason(), saves);
  h.AllSaved();
  EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
  EXPECT_EQ(h.status(h.id).checkpoints_size(), 1);
}

TEST(RecoveryWaits, AndIsCancelledMeanwhile) {
  SavedInItsStart h;
  EXPECT_TRUE(h.cluster.SaveAndCancel(h.id, h.now, h.actions).ok());
  h.AllSaved();
  EXPECT_EQ(h.status(h.id).state(), CANCELLED);
  EXPECT_EQ(h.status(h.id).reason(),
            "cancelled by its user after step 1; saved in /c/copies");
}

TEST(RecoveryWaits, ACancelSaysWhatWasSaved) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(2);
  const JobId id = h.Recovering(w);
  h.AllStep(id, w, 1);
  h.Commits(id, w[0], 1);
  for (const int64_t step : {2, 3, 4}) h.AllStep(id, w, step);
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {3});
  EXPECT_TRUE(h.cluster.SaveAndCancel(id, h.now, h.actions).ok());
  h.Saved(w[0]);
  h.Saved(w[0], "/c: no space");
  EXPECT_EQ(h.status(id).state(), CANCELLED);
  EXPECT_EQ(h.status(id).reason(),
            "cancelled by its user after step 4; it could not be saved; the "
            "newest checkpoint is of step 1: /c/step-1");
}

TEST(RecoveryWaits, AlsoWhereCopiesAreOfAnEarlierStep) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(2);
  const JobId id = h.Recovering(w);
  for (const int64_t step : {1, 2, 3, 4}) h.AllStep(id, w, step);
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {3});
  EXPECT_TRUE(h.cluster.SaveAndCancel(id, h.now, h.actions).ok());
  h.Saved(w[0]);
  h.Saved(w[0]);
  EXPECT_EQ(h.status(id).reason(),
            "cancelled by its user after step 4; the state after step 3 is "
            "saved in /c/copies");
}

TEST(RecoveryWaits, IsCancelledWhileItsRanksAreStopped) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  h.Disconnect(w[1], "connection closed");
  EXPECT_TRUE(h.cluster.SaveAndCancel(id, h.now, h.actions).ok());
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  h.EndsKeeping(id, 0, w[0], {0});
  EXPECT_EQ(h.status(id).state(), CANCELLED);
  EXPECT_EQ(h.status(id).reason(),
            "cancelled by its user after step 0; it could not be saved");
  EXPECT_EQ(h.Forgotten(w[0]), Attempts{1});
  EXPECT_EQ(h.worker(w[2]).state(), WorkerStatus::IDLE);
}

TEST(RecoveryWaits, LosesTheOthersToo) {
  Waiting h;
  h.Disconnect(h.w[0], "connection closed");
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  EXPECT_EQ(h.status(h.id).reason().substr(0, 24), "waits for 2 idle workers");
  const WorkerId first = h.Join("w2");
  EXPECT_EQ(h.worker(first).state(), WorkerStatus::IDLE) << "all or none";
  const WorkerId second = h.Join("w3");
  EXPECT_EQ(h.Begun(first).ref().attempt(), 2);
  EXPECT_FALSE(h.Begun(second).has_recovery()) << "no copies are left";
  h.AllReady(h.id, {first, second}, 1);
}

TEST(RecoveryWaits, WhoLeavesMeanwhileIsReplaced) {
  Waiting h;
  h.SaysGoodbye(h.w[0]);
  EXPECT_EQ(h.worker(h.w[0]).state(), WorkerStatus::LEFT);
  EXPECT_EQ(h.status(h.id).reason().substr(0, 24), "waits for 2 idle workers");
}

// What it keeps is in no other worker's memory.
TEST(RecoveryWaits, CopiesOfWhoIsAskedToEndAreSavedFirst) {
  Waiting h;
  h.Leaves(h.id, 0, h.w[0]);
  ASSERT_EQ(h.Asked(h.w[0]).size(), 1);
  EXPECT_EQ(h.Asked(h.w[0])[0].state().step(), 1);
  EXPECT_EQ(h.job(h.id).events.back().text(),
            "w0 (rank 0) was asked to end (SIGTERM)");
  h.Leaves(h.id, 0, h.w[0]);  // and does not wait any longer for that
  EXPECT_EQ(h.Asked(h.w[0]).size(), 1);
  h.Saved(h.w[0]);
  EXPECT_TRUE(h.Forgotten(h.w[0]).empty());
  h.Saved(h.w[0]);
  EXPECT_EQ(h.Forgotten(h.w[0]), Attempts{1}) << "and it goes";
  EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
  h.SaysGoodbye(h.w[0]);
  h.Join("w2");
  const WorkerId last = h.Join("w3");
  EXPECT_EQ(h.Begun(last).resume(), "/c/copies");
}

TEST(RecoveryWaits, WhoseCopiesCannotBeSavedGoesAllTheSame) {
  Waiting h;
  h.Leaves(h.id, 0, h.w[0]);
  h.Saved(h.w[0], "/c: no space");
  EXPECT_EQ(h.Forgotten(h.w[0]), Attempts{1});
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  EXPECT_EQ(h.job(h.id).events.back().text(),
            "copies of the ranks' states could not be saved: w0 (rank 0): /c: "
            "no space");
}

// Others have the same, and there are workers to go on with.
TEST(RecoveryWaits, WhoIsAskedToEndIsReplacedAtOnceWhereCopiesAreLeft) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(4);
  const JobId id = h.Recovering({w[0], w[1], w[2]});
  h.AllStep(id, {w[0], w[1], w[2]}, 1);
  h.EndsKeeping(id, 0, w[0], {1}, "step 2: a bad value");
  h.EndsKeeping(id, 1, w[1], {1});
  h.Leaves(id, 1, w[1]);
  EXPECT_TRUE(h.Sent(w[1]).back().stop().checkpoint())
      << "it stays until it is known what rank 2 keeps";
  EXPECT_TRUE(h.Forgotten(w[1]).empty()) << "as long as others may have less";
  h.EndsKeeping(id, 2, w[2], {1});
  EXPECT_EQ(h.Forgotten(w[1]), Attempts{1});
  EXPECT_EQ(h.Begun(w[3]).recovery().state().step(), 1);
  h.AllReady(id, {w[0], w[3], w[2]}, 2);
}

// Its job is done, or goes on without it.
TEST(RecoveryWaits, WhoKeepsWhatNobodyNeedsIsToldSo) {
  Waiting h;
  const RankRef ref = h.Ref(h.id, 0);
  EXPECT_TRUE(h.cluster.Cancel(h.id, h.now, h.actions).ok());
  h.ClearActions();
  h.Leaves(h.id, 0, h.w[0]);
  EXPECT_EQ(h.Forgotten(h.w[0]), Attempts{1});
}

// It keeps what the one before left, and has not heard of the next.
TEST(RecoveryWaits, WhoLeavesAJobHasAPlaceInTheNext) {
  for (const bool stored : {true, false}) {
    Waiting h;
    const JobId next = h.Submit(RecoveringSpec(1));
    h.stored_by_hand = !stored;
    EXPECT_TRUE(h.cluster.Cancel(h.id, h.now, h.actions).ok());
    h.Tick(absl::Seconds(1));
    ASSERT_EQ(h.worker(h.w[0]).job(), next.value());
    h.ClearActions();
    h.Leaves(h.id, 0, h.w[0]);
    EXPECT_EQ(h.status(next).state(), RECOVERING) << h.status(next).reason();
    EXPECT_TRUE(absl::StrContains(h.status(next).reason(),
                                  "w0 (rank 0) was asked to end (SIGTERM)"))
        << h.status(next).reason();
    std::vector<int64_t> told;  // to stop, of which jobs
    for (const SchedulerMessage& message : h.Sent(h.w[0])) {
      if (message.has_stop()) told.push_back(message.stop().ref().job());
    }
    std::vector<int64_t> all = {h.id.value()};
    if (stored) all.push_back(next.value());
    EXPECT_EQ(told, all);
  }
}

// Of a start that is not stored nobody has heard: others may do.
TEST(RecoveryWaits, AJobWithoutRecoveryIsQueuedAgainInThatPlace) {
  for (const bool lost : {false, true}) {
    Waiting h;
    const JobId next = h.Submit(SpecOf(1));
    h.stored_by_hand = true;
    EXPECT_TRUE(h.cluster.Cancel(h.id, h.now, h.actions).ok());
    h.Tick(absl::Seconds(1));
    ASSERT_EQ(h.worker(h.w[0]).job(), next.value());
    if (lost) {
      h.Disconnect(h.w[0], "connection closed");
    } else {
      h.Leaves(h.id, 0, h.w[0]);
    }
    EXPECT_EQ(h.status(next).state(), QUEUED) << h.status(next).reason();
    EXPECT_TRUE(absl::StrContains(
        h.job(next).events.back().text(),
        lost ? "w0 (rank 0) was lost in its start: connection closed"
             : "w0 (rank 0) was asked to end (SIGTERM)"));
    h.stored_by_hand = false;
    h.Stored({next, 1});  // nobody waits for that
    const WorkerId other = h.Join("w2");
    EXPECT_EQ(h.Begun(other).ref().attempt(), 2);
    h.Ready(next, 0, other);
    EXPECT_EQ(h.status(next).state(), RUNNING);
  }
}

TEST(RecoveryWaits, EachLossIsAnEvent) {
  Waiting h;
  h.Disconnect(h.w[0], "cable pulled");
  EXPECT_EQ(h.job(h.id).events.back().text(),
            "w0 (rank 0) was lost in its recovery: cable pulled");
}

// It has no device any more: its last words come before it goes.
TEST(RecoveryWaits, WhoIsLeavingTakesNothingNew) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  WorkerMessage leaving;
  leaving.mutable_leaving()->set_reason("its GPU is of no use");
  h.Send(w[1], leaving);
  h.EndsKeeping(id, 1, w[1], {0}, "step 1: its GPU is of no use");
  h.EndsKeeping(id, 0, w[0], {0});
  EXPECT_EQ(h.Begun(w[2]).ref().rank(), 1);
  EXPECT_EQ(h.Begun(w[1]).ref().attempt(), 1);
  h.SaysGoodbye(w[1]);
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  h.AllReady(id, {w[0], w[2]}, 1);
}

TEST(RecoveryWaits, WhoIsAskedToEndInTheNextStartIsReplaced) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(4);
  const JobId id = h.Recovering({w[0], w[1]});
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {0});
  WorkerMessage leaving;
  *leaving.mutable_leaving()->mutable_ref() = h.Ref(id, 1);
  leaving.mutable_leaving()->set_reason("SIGTERM");
  h.Send(w[2], leaving);
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  EXPECT_EQ(h.status(id).reason(),
            "w2 (rank 1) was asked to end (SIGTERM) in its recovery");
  h.EndsKeeping(id, 0, w[0], {0});
  h.EndsKeeping(id, 1, w[2], {0});
  EXPECT_EQ(h.Begun(w[3]).ref().attempt(), 3);
  h.AllReady(id, {w[0], w[3]}, 1);
}

TEST(RecoveryWaits, ForTheStoreAsLongAsItTakes) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  h.stored_by_hand = true;
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {0});
  const std::string begins = h.status(id).reason();
  const absl::Status full = absl::ResourceExhaustedError("disk full");
  h.Stored(h.All<AwaitStored>().back(), full);
  EXPECT_EQ(h.status(id).reason(),
            "waits until the scheduler can write its store again: disk full");
  for (int minutes = 0; minutes < 15; ++minutes) {
    h.Pass(absl::Minutes(1), {w[0], w[2]});
    h.Stored(h.All<AwaitStored>().back(), full);
  }
  EXPECT_EQ(h.status(id).state(), RECOVERING) << "no fault of its own";
  EXPECT_EQ(h.status(id).restarts(), 1);
  h.Pass(absl::Seconds(3), {w[0], w[2]});
  h.Stored(h.All<AwaitStored>().back());
  EXPECT_EQ(h.status(id).reason(), begins);
  EXPECT_EQ(h.Begun(w[2]).ref().attempt(), 2);
  h.Pass(Limits().start_max - absl::Seconds(1), {w[0], w[2]});
  EXPECT_EQ(h.status(id).attempt(), 2) << "that is the ranks' time";
  h.AllReady(id, {w[0], w[2]}, 1);
}

TEST(RecoveryWaits, AStoreThatDoesNotAnswerIsNamed) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  h.stored_by_hand = true;
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {0});
  h.Pass(3 * Limits().start_max, {w[0], w[2]});
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  EXPECT_EQ(h.status(id).reason(),
            "waits until the scheduler can write its store again: it has not "
            "answered for 5m");
  h.Stored(h.All<AwaitStored>().back());
  h.AllReady(id, {w[0], w[2]}, 1);
}

TEST(RecoveryWaits, ForAWorkerWhoseLeaseRunsOut) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  h.EndsKeeping(id, 0, w[0], {0}, "step 1: no word from rank 1");
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  h.Pass(absl::Seconds(7), {w[0], w[2]});
  EXPECT_EQ(h.worker(w[1]).state(), WorkerStatus::LOST);
  EXPECT_EQ(h.Begun(w[2]).ref().rank(), 1);
}

// On w0 its start fails, and the only other worker is busy for long.
struct FailsOnW0 : RecoveryHarness {
  FailsOnW0() : on(JoinMany(2)), id(Recovering(on)) {
    busy = Join("busy");
    other = Submit(SpecOf(1, /*steps=*/1000));
    Ready(other, 0, busy);
    Disconnect(on[0], "connection closed");
    EndsKeeping(id, 1, on[1], {1});
    on[0] = Join("w0");
    Fails();
  }
  void Fails() {
    CHECK_EQ(worker(on[0]).job(), id.value()) << status(id).reason();
    EndsKeeping(id, 0, on[0], {}, "EIO", /*of_machine=*/true);
    EndsKeeping(id, 1, on[1], {1});
    CHECK_EQ(status(id).state(), RECOVERING) << status(id).reason();
    CHECK_EQ(worker(on[0]).state(), WorkerStatus::IDLE);
  }
  void Waits(absl::Duration time) {
    for (; time > absl::ZeroDuration(); time -= absl::Seconds(30)) {
      Pass(std::min(time, absl::Duration(absl::Seconds(30))),
           {on[0], on[1], busy});
      Step(other, 0, busy, status(other).steps_done() + 1);
    }
  }
  std::vector<WorkerId> on;
  JobId id, other;
  WorkerId busy;
};

TEST(RecoveryWaits, WhatFailsThereAgainCostsNothingAndIsTriedLessAndLessOften) {
  FailsOnW0 h;
  const int restarts = h.status(h.id).restarts();
  absl::Duration pause = absl::Minutes(1);
  // More often than a job may fail without a new step.
  for (int i = 0; i < 5; ++i) {
    h.Waits(pause - absl::Seconds(2));
    ASSERT_EQ(h.worker(h.on[0]).state(), WorkerStatus::IDLE) << i;
    h.Waits(absl::Seconds(3));
    h.Fails();
    pause *= 2;
  }
  EXPECT_LE(h.status(h.id).restarts(), restarts + 1);
  ASSERT_TRUE(h.cluster.Cancel(h.other, h.now, h.actions).ok());
  h.Ended(h.other, 0, h.busy, {.ok = false, .stopped = true});
  EXPECT_TRUE(absl::StrContains(h.status(h.id).reason(), "busy takes rank 0"))
      << h.status(h.id).reason();
}

TEST(RecoveryWaits, NorDoesItCostAnythingWhereTheJobMovesThen) {
  FailsOnW0 h;
  h.Waits(absl::Minutes(1) + absl::Seconds(1));
  h.Fails();
  const int restarts = h.status(h.id).restarts();
  h.cluster.Drain("the scheduler was asked to end", h.now, h.actions);
  h.Saved(h.on[1]);
  h.Saved(h.on[1]);
  EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
  EXPECT_EQ(h.status(h.id).restarts(), restarts);
}

// The disk does not take the checkpoint, and takes the copies a little later.
TEST(RecoveryWaits, NorDoesAFullDiskWhereTheJobMoves) {
  RecoveryHarness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Recovering(on);
  h.AllStep(id, on, 1);
  h.cluster.Drain("the scheduler was asked to end", h.now, h.actions);
  h.EndsKeeping(id, 0, on[0], {1}, "step 2: checkpoint of step 2: full");
  h.EndsKeeping(id, 1, on[1], {1});
  for (const WorkerId saves : {on[0], on[1], on[0]}) h.Saved(saves);
  EXPECT_EQ(h.status(id).state(), QUEUED) << h.status(id).reason();
  EXPECT_EQ(h.status(id).restarts(), 0);
}

}  // namespace
}  // namespace troupe
