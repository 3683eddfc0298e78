// How a job goes on after a failure.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/run_control.h"
#include "tests/scheduler/cluster/recovery_harness.h"

namespace troupe {
namespace {

using Attempts = std::vector<int>;

TEST(RunRecover, AnIdleWorkerTakesThePlaceOfOneThatIsLost) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  for (int step = 1; step <= 5; ++step) h.AllStep(id, {w[0], w[1]}, step);
  h.ClearActions();
  h.Disconnect(w[1], "connection closed");
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  EXPECT_EQ(h.status(id).reason(),
            "w1 (rank 1) was lost in step 6: connection closed");
  ASSERT_EQ(h.Sent(w[0]).size(), 1u);
  EXPECT_TRUE(h.Sent(w[0])[0].stop().peers_gone());
  EXPECT_FALSE(h.Sent(w[0])[0].stop().give_up_kept());
  h.EndsKeeping(id, 0, w[0], {2, 4});
  EXPECT_EQ(h.status(id).reason(),
            "attempt 2 from copies of step 4; w2 takes rank 1; before it, w1 "
            "(rank 1) was lost in step 6: connection closed");
  EXPECT_EQ(h.status(id).restarts(), 1);
  EXPECT_EQ(h.status(id).attempt(), 2);
  for (const int rank : {0, 1}) {
    const Assignment begun = h.Begun(w[2 * rank]);
    EXPECT_EQ(begun.ref().attempt(), 2);
    EXPECT_EQ(begun.ref().rank(), rank);
    EXPECT_EQ(begun.worker_names(1), "w2");
    EXPECT_EQ(begun.recovery().state().step(), 4);
    ASSERT_EQ(begun.recovery().handovers_size(), 1);
    EXPECT_EQ(begun.recovery().handovers(0).from(), 0);
    EXPECT_EQ(begun.recovery().handovers(0).to(), 1);
  }
  EXPECT_EQ(h.Forgotten(w[0]), Attempts{});
  h.Tick(absl::Seconds(1));
  h.AllReady(id, {w[0], w[2]}, 5);
  EXPECT_EQ(h.status(id).reason(), "");
  EXPECT_EQ(
      h.job(id).events.back().text(),
      "recovered in 1.0 s (0 s until all ranks had let go, 0 s for workers to "
      "take the places, 1.0 s to begin): goes on with step 5, 1 run again");
}

// With `resume: auto` no rank that recovers knows what the first attempt found.
TEST(RunRecover, FromCopiesItHasResumedWhatItHadBefore) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  JobSpec spec = RecoveringSpec(2);
  spec.mutable_checkpoint()->set_resume("auto");
  const JobId id = h.Submit(spec);
  for (const int rank : {0, 1}) {
    WorkerMessage ready;
    *ready.mutable_rank_ready()->mutable_ref() = h.Ref(id, rank);
    ready.mutable_rank_ready()->set_first_step(5);
    if (rank == 0) ready.mutable_rank_ready()->set_resumed_from("/c/step-4");
    h.Send(w[rank], ready);
  }
  h.AllStep(id, {w[0], w[1]}, 5);
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {5});
  h.AllReady(id, {w[0], w[2]}, 6);
  EXPECT_EQ(h.status(id).attempt(), 2);
  EXPECT_EQ(h.status(id).resumed_from(), "/c/step-4");
}

// More steps than the scheduler waits for of the other rank.
TEST(RunRecover, StepsOfARankThatIsHeardFirstDoNotRunAgain) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  h.AllStep(id, {w[0], w[1]}, 1);
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {1});
  h.Ready(id, 0, w[0], 2);
  for (int64_t step = 2; step < 100; ++step) h.Step(id, 0, w[0], step);
  EXPECT_GT(h.status(id).steps_done(), 1);
  h.Ready(id, 1, w[2], 2);
  const std::string said = h.job(id).events.back().text();
  EXPECT_TRUE(absl::EndsWith(said, ": goes on with step 2")) << said;
}

TEST(RunRecover, StepsAreReportedOnceAndOpenOnesAreClosed) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  for (int step = 1; step <= 4; ++step) h.AllStep(id, {w[0], w[1]}, step);
  // What the lost one did of steps 5 and 6 is never heard.
  h.Step(id, 0, w[0], 5);
  h.Step(id, 0, w[0], 6);
  h.Disconnect(w[1], "connection closed");
  EXPECT_EQ(h.status(id).steps_done(), 4);
  h.EndsKeeping(id, 0, w[0], {3, 5});
  EXPECT_EQ(h.status(id).steps_done(), 5) << "nobody will run it again";
  h.AllReady(id, {w[0], w[2]}, 6);
  h.AllStep(id, {w[0], w[2]}, 6);
  EXPECT_EQ(h.status(id).steps_done(), 6);
  // Farther back: what was reported stays as it is.
  h.AllStep(id, {w[0], w[2]}, 7);
  const std::vector<WorkerId> on = {w[0], h.Join("w3")};
  h.Disconnect(w[2], "connection closed");
  h.EndsKeeping(id, 0, w[0], {5});
  h.AllReady(id, on, 6);
  for (int step = 6; step <= 8; ++step) h.AllStep(id, on, step);
  std::vector<int64_t> stored;
  for (const PersistStep& step : h.All<PersistStep>()) {
    stored.push_back(step.step.step());
  }
  EXPECT_EQ(stored, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(RunRecover, WithoutCopiesItGoesOnFromItsCheckpointOrItsBeginning) {
  for (const bool saved : {true, false}) {
    RecoveryHarness h;
    const std::vector<WorkerId> w = h.JoinMany(3);
    const JobId id = h.Recovering({w[0], w[1]});
    for (int step = 1; step <= 4; ++step) h.AllStep(id, {w[0], w[1]}, step);
    if (saved) h.Commits(id, w[0], 3);
    h.Disconnect(w[1], "connection closed");
    h.EndsKeeping(id, 0, w[0], {});
    const Assignment begun = h.Begun(w[2]);
    EXPECT_FALSE(begun.has_recovery());
    EXPECT_EQ(begun.resume(), saved ? "/c/step-3" : "");
    EXPECT_EQ(h.status(id).reason().substr(0, 40),
              saved ? "attempt 2 from the checkpoint of step 3,"
                    : "attempt 2 from where it began, for neith");
    h.AllReady(id, {w[0], w[2]}, saved ? 4 : 1);
    EXPECT_EQ(h.status(id).steps_done(), 4);
  }
}

TEST(RunRecover, ACheckpointThatIsNewerThanTheCopiesCostsFewerSteps) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  for (int step = 1; step <= 3; ++step) h.AllStep(id, {w[0], w[1]}, step);
  h.Step(id, 0, w[0], 4);
  h.Commits(id, w[0], 4);
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {3});
  EXPECT_FALSE(h.Begun(w[2]).has_recovery());
  EXPECT_EQ(h.Begun(w[2]).resume(), "/c/step-4");
  EXPECT_TRUE(absl::StrContains(h.status(id).reason(),
                                "from the checkpoint of step 4, for copies are "
                                "of an earlier step"))
      << h.status(id).reason();
  EXPECT_EQ(h.status(id).steps_done(), 4) << "nobody will run it again";
}

TEST(RunRecover, WhatIsLostOnTheWayIsReplacedAgain) {
  for (const bool handed_out : {true, false}) {
    RecoveryHarness h;
    const std::vector<WorkerId> w = h.JoinMany(4);
    const JobId id = h.Recovering({w[0], w[1]},
                                  /*restarts=*/handed_out ? 100 : 1);
    h.Disconnect(w[1], "connection closed");
    h.stored_by_hand = !handed_out;
    h.EndsKeeping(id, 0, w[0], {0});
    h.ClearActions();
    h.Tick(absl::Seconds(2));
    h.Disconnect(w[2], "connection closed");
    if (handed_out) {
      EXPECT_TRUE(h.Sent(w[0]).back().has_stop());
      h.EndsKeeping(id, 0, w[0], {0});
    } else {
      h.Stored(h.All<AwaitStored>().back());
      EXPECT_EQ(h.Sent(w[0]).size(), 1u) << "it hears of attempt 3 only";
    }
    EXPECT_EQ(h.Begun(w[0]).ref().attempt(), 3);
    EXPECT_EQ(h.Begun(w[3]).ref().attempt(), 3);
    EXPECT_TRUE(h.Begun(w[3]).has_recovery());
    EXPECT_EQ(h.status(id).restarts(), handed_out ? 2 : 1);
    h.Tick(absl::Seconds(1));
    h.AllReady(id, {w[0], w[3]}, 1);
    EXPECT_EQ(
        h.job(id).events.back().text(),
        "recovered in 3.0 s (2.0 s until all ranks had let go, 0 s for workers "
        "to take the places, 1.0 s to begin): goes on with step 1")
        << "since the first loss";
    EXPECT_EQ(h.status(id).stood_seconds(), 3);
  }
}

TEST(RunRecover, AWorkerThatIsLostBeforeTheStartIsStoredIsReplaced) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  h.stored_by_hand = true;
  const JobId id = h.Submit(RecoveringSpec(2));
  h.Disconnect(w[1], "connection closed");
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  h.Stored(h.All<AwaitStored>().back());
  EXPECT_EQ(h.Begun(w[2]).ref().attempt(), 2);
  h.AllReady(id, {w[0], w[2]}, 1);
}

TEST(RunRecover, OneThatResumedAndNeverRanCountsTheStepsBefore) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  JobSpec spec = RecoveringSpec(2);
  spec.mutable_checkpoint()->set_resume("/r");
  const JobId id = h.Submit(spec);
  h.Ready(id, 0, w[0], 8);
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {});
  EXPECT_EQ(h.Begun(w[2]).resume(), "/r");
  h.AllReady(id, {w[0], w[2]}, 8);
  EXPECT_EQ(h.status(id).steps_done(), 7);
}

TEST(RunRecover, RestartsAreUsedUp) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(4);
  const JobId id = h.Recovering({w[0], w[1]}, /*restarts=*/1);
  h.AllStep(id, {w[0], w[1]}, 1);
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {1});
  h.AllReady(id, {w[0], w[2]}, 2);
  h.ClearActions();
  h.Disconnect(w[2], "connection closed");
  EXPECT_EQ(h.status(id).state(), STOPPING);
  h.EndsKeeping(id, 0, w[0], {1});
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).reason(),
            "w2 (rank 1) was lost in step 2: connection closed; the job has "
            "gone on 1 time, as often as its recovery.restarts allows");
  EXPECT_EQ(h.Forgotten(w[0]), Attempts{2});
  EXPECT_EQ(h.worker(w[0]).state(), WorkerStatus::IDLE);
}

TEST(RunRecover, AJobThatFailsTwiceByItselfAtAStepIsGivenUp) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(2);
  const JobId id = h.Recovering(w);
  h.AllStep(id, w, 1);
  const auto fail = [&] {
    h.EndsKeeping(id, 1, w[1], {1}, "step 2: not finite");
    h.EndsKeeping(id, 0, w[0], {1});
  };
  fail();
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  EXPECT_EQ(h.Begun(w[1]).ref().attempt(), 2) << "on the same workers";
  h.AllReady(id, w, 2);
  h.AllStep(id, w, 2);
  fail();
  EXPECT_EQ(h.Begun(w[1]).ref().attempt(), 3) << "there was a new step";
  h.AllReady(id, w, 2);
  h.ClearActions();
  fail();
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).reason(),
            "w1 (rank 1) failed in step 2: not finite; 2 attempts have failed "
            "since the last new step, so that the job is not started again");
  EXPECT_EQ(h.Forgotten(w[0]), Attempts{3});
  EXPECT_EQ(h.Forgotten(w[1]), Attempts{3});
}

TEST(RunRecover, LossesAndFailuresAreCountedApart) {
  Limits limits;
  limits.losses_in_a_step_max = 3;
  RecoveryHarness h(limits);
  const std::vector<WorkerId> w = h.JoinMany(6);
  const JobId id = h.Recovering({w[0], w[1]});
  const auto lose = [&](WorkerId worker) {
    h.Disconnect(worker, "connection closed");
    h.EndsKeeping(id, 0, w[0], {0});
  };
  lose(w[1]);
  h.AllReady(id, {w[0], w[2]}, 1);
  h.EndsKeeping(id, 1, w[2], {0}, "step 1: bad luck");
  h.EndsKeeping(id, 0, w[0], {0});
  EXPECT_EQ(h.status(id).state(), RECOVERING) << h.status(id).reason();
  h.AllReady(id, {w[0], w[2]}, 1);
  lose(w[2]);
  h.AllReady(id, {w[0], w[3]}, 1);
  lose(w[3]);
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).reason(),
            "w3 (rank 1) was lost in step 1: connection closed; 3 attempts "
            "have lost a worker since the last new step, so that the job is "
            "not started again");
}

// They say nothing of the job: as where the disk is full, and machines are
// restarted one after the other.
TEST(RunRecover, LossesInStartsThatNobodyHasHeardOfAreNotCounted) {
  Limits limits;
  limits.losses_in_a_step_max = 3;
  RecoveryHarness h(limits);
  const std::vector<WorkerId> w = h.JoinMany(7);
  const JobId id = h.Recovering({w[0], w[1]});
  h.stored_by_hand = true;
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {0});
  for (int i = 2; i < 6; ++i) {
    EXPECT_EQ(h.status(id).workers(1), absl::StrCat("w", i));
    h.Disconnect(w[i], "connection closed");
    EXPECT_NE(h.status(id).state(), FAILED) << h.status(id).reason();
  }
}

// The first to fail is seldom the one at fault: its peers' collectives fail.
TEST(RunRecover, ARankThatEndsByItselfKeepsItsCopiesToo) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(4);
  const JobId id = h.Recovering({w[0], w[1], w[2]});
  h.EndsKeeping(id, 0, w[0], {0}, "step 1: no word from rank 2");
  h.EndsKeeping(id, 1, w[1], {0}, "step 1: no word from rank 2");
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  h.Disconnect(w[2], "connection closed");
  EXPECT_EQ(h.Forgotten(w[0]), Attempts{});
  EXPECT_EQ(h.Forgotten(w[1]), Attempts{});
  EXPECT_TRUE(h.Begun(w[3]).has_recovery());
}

TEST(RunRecover, ARankThatHasEndedWellGoesOnWithTheOthers) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  h.AllStep(id, {w[0], w[1]}, 9);
  h.Step(id, 0, w[0], 10);
  h.Ended(id, 0, w[0], {});
  EXPECT_EQ(h.worker(w[0]).state(), WorkerStatus::BUSY) << "it may be needed";
  h.Disconnect(w[1], "connection closed");
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  EXPECT_EQ(h.Begun(w[0]).ref().attempt(), 2);
  EXPECT_EQ(h.Begun(w[2]).ref().attempt(), 2);
}

TEST(RunRecover, AWorkerThatIsLostAfterItsEndIsNotMissed) {
  for (const bool goodbye : {true, false}) {
    RecoveryHarness h;
    const std::vector<WorkerId> w = h.JoinMany(2);
    const JobId id = h.Recovering(w);
    h.AllStep(id, w, 10);
    h.Ended(id, 1, w[1], {});
    if (goodbye) {
      h.SaysGoodbye(w[1]);
    } else {
      h.Disconnect(w[1], "connection closed");
    }
    EXPECT_EQ(h.status(id).state(), RUNNING);
    h.Ended(id, 0, w[0], {});
    EXPECT_EQ(h.status(id).state(), SUCCEEDED);
  }
}

TEST(RunRecover, NobodyKeepsCopiesOfAJobThatHasSucceeded) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(2);
  const JobId id = h.Recovering(w);
  h.AllStep(id, w, 10);
  for (const int rank : {0, 1}) {
    WorkerMessage message;
    *message.mutable_ended()->mutable_ref() = h.Ref(id, rank);
    message.mutable_ended()->set_ok(true);
    message.mutable_ended()->set_step(10);
    message.mutable_ended()->add_kept()->set_own(true);
    h.Send(w[rank], message);
  }
  EXPECT_EQ(h.status(id).state(), SUCCEEDED);
  for (const int rank : {0, 1}) {
    EXPECT_EQ(h.Forgotten(w[rank]), Attempts{1});
    EXPECT_EQ(h.worker(w[rank]).state(), WorkerStatus::IDLE);
  }
}

TEST(RunRecover, WhatWasSaidInAnEarlierAttemptIsDropped) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  const RankRef old = h.Ref(id, 0);
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {0});
  h.AllReady(id, {w[0], w[2]}, 1);
  WorkerMessage late;
  *late.mutable_ended()->mutable_ref() = old;
  h.Send(w[0], late);
  *late.mutable_step()->mutable_ref() = old;
  late.mutable_step()->mutable_record()->set_step(9);
  h.Send(w[0], late);
  EXPECT_EQ(h.status(id).state(), RUNNING);
  EXPECT_EQ(h.job(id).run->ranks[0].step, 0);
}

TEST(RunRecover, CheckpointsAreListedInTheOrderOfTheirSteps) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  for (int step = 1; step <= 6; ++step) h.AllStep(id, {w[0], w[1]}, step);
  h.Commits(id, w[0], 4);
  h.Commits(id, w[0], 6);
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {3});
  h.AllReady(id, {w[0], w[2]}, 4);
  h.Commits(id, w[0], 4);
  h.Commits(id, w[0], 5);
  std::vector<int64_t> steps;
  for (const CheckpointRecord& checkpoint : h.status(id).checkpoints()) {
    steps.push_back(checkpoint.step());
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 5, 6}));
}

TEST(RunRecover, OneThatIsSavedWhileItCatchesUpSaysWhere) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  for (int step = 1; step <= 6; ++step) h.AllStep(id, {w[0], w[1]}, step);
  h.Disconnect(w[1], "connection closed");
  h.EndsKeeping(id, 0, w[0], {2});
  h.AllReady(id, {w[0], w[2]}, 3);
  ASSERT_TRUE(h.cluster.SaveAndCancel(id, h.now, h.actions).ok());
  h.AllStep(id, {w[0], w[2]}, 3);
  h.Commits(id, w[0], 3);
  h.EndsKeeping(id, 0, w[0], {2});
  h.EndsKeeping(id, 1, w[2], {2});
  EXPECT_EQ(h.status(id).state(), CANCELLED);
  EXPECT_EQ(h.status(id).reason(),
            "cancelled by its user after step 3; saved in /c/step-3");
}

}  // namespace
}  // namespace troupe
