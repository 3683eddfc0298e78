// How jobs end before their time.
#include "gtest/gtest.h"
#include "scheduler/cluster/run_control.h"
#include "tests/scheduler/cluster/recovery_harness.h"

namespace troupe {
namespace {

bool ToldToStop(Harness& h, WorkerId worker, bool peers_gone) {
  for (const SchedulerMessage& message : h.Sent(worker)) {
    if (message.has_stop()) return message.stop().peers_gone() == peers_gone;
  }
  return false;
}

TEST(RunEnd, AJobThatEndsEarlyAsAskedSucceedsAndSaysSo) {
  for (const int64_t ended_after : {6, 5}) {
    Harness h;
    const WorkerId on = h.Join("w0");
    JobSpec spec = SpecOf(1);
    spec.mutable_training()->set_stop_after(6);
    const JobId id = h.Submit(spec);
    h.Ready(id, 0, on);
    h.Ended(id, 0, on, {.step = ended_after});
    const bool as_asked = ended_after == 6;
    EXPECT_EQ(h.status(id).state(), as_asked ? SUCCEEDED : FAILED);
    EXPECT_EQ(h.status(id).reason(),
              as_asked ? "stopped after step 6 of 10 as asked"
                       : "w0 (rank 0) stopped after step 5 of 10");
  }
}

TEST(RunEnd, ACancelledJobIsSavedIfItsUserAsksForIt) {
  for (const bool saved : {true, false}) {
    Harness h;
    const WorkerId on = h.Join("w0");
    JobSpec spec = SpecOf(1);
    const JobId bare = h.Submit(spec);
    EXPECT_TRUE(absl::IsFailedPrecondition(
        h.cluster.SaveAndCancel(bare, h.now, h.actions)));
    h.Ended(bare, 0, on, {});
    spec.mutable_checkpoint()->set_directory("/c");
    const JobId id = h.Submit(spec);
    h.Ready(id, 0, on);
    h.Step(id, 0, on, 1);
    h.ClearActions();
    ASSERT_TRUE(h.cluster.SaveAndCancel(id, h.now, h.actions).ok());
    ASSERT_EQ(h.Sent(on).size(), 1u);
    EXPECT_TRUE(h.Sent(on)[0].stop().checkpoint());
    EXPECT_FALSE(h.Sent(on)[0].stop().peers_gone());
    EXPECT_EQ(h.status(id).state(), STOPPING);
    h.Step(id, 0, on, 2);
    if (saved) {
      WorkerMessage committed;
      *committed.mutable_committed()->mutable_ref() = h.Ref(id, 0);
      CheckpointRecord& record =
          *committed.mutable_committed()->mutable_checkpoint();
      record.set_step(2);
      record.set_path("/c/step-2");
      h.Send(on, committed);
    }
    h.Ended(
        id, 0, on,
        {.ok = false, .error = "step 2: the disk is full", .stopped = saved});
    EXPECT_EQ(h.status(id).state(), CANCELLED);
    EXPECT_EQ(h.status(id).reason(),
              saved ? "cancelled by its user after step 2; saved in /c/step-2"
                    : "cancelled by its user after step 2; it could not be "
                      "saved: w0 (rank 0) failed in step 2: the disk is full");
  }
}

TEST(RunEnd, ASecondCancelDoesNotWaitForTheCheckpoint) {
  Harness h;
  const WorkerId on = h.Join("w0");
  JobSpec spec = SpecOf(1);
  spec.mutable_checkpoint()->set_directory("/c");
  const JobId id = h.Submit(spec);
  h.Ready(id, 0, on);
  ASSERT_TRUE(h.cluster.SaveAndCancel(id, h.now, h.actions).ok());
  h.ClearActions();
  ASSERT_TRUE(h.cluster.SaveAndCancel(id, h.now, h.actions).ok());
  EXPECT_TRUE(h.Sent(on).empty());
  ASSERT_TRUE(h.cluster.Cancel(id, h.now, h.actions).ok());
  ASSERT_EQ(h.Sent(on).size(), 1u);
  EXPECT_FALSE(h.Sent(on)[0].stop().checkpoint());
}

// Rank 1 is alive and does nothing; rank 0 waits for its share.
TEST(RunEnd, WhoWaitsForARankThatDoesNotSaveIsNotLost) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  JobSpec spec = SpecOf(2);
  spec.mutable_checkpoint()->set_directory("/c");
  const JobId id = h.Submit(spec);
  for (const int rank : {0, 1}) h.Ready(id, rank, on[rank]);
  ASSERT_TRUE(h.cluster.SaveAndCancel(id, h.now, h.actions).ok());
  h.ClearActions();
  h.Pass(absl::Seconds(61), on);
  EXPECT_EQ(h.status(id).state(), STOPPING);
  EXPECT_TRUE(ToldToStop(h, on[0], true));
  h.Ended(id, 0, on[0], {.ok = false, .error = "stopped", .stopped = true});
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
  h.Pass(absl::Seconds(31), on);
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
  EXPECT_EQ(h.worker(on[1]).state(), WorkerStatus::LOST);
  EXPECT_EQ(h.status(id).state(), CANCELLED);
}

WorkerMessage LeavingOf(const Harness& h, JobId id, int rank) {
  WorkerMessage message;
  *message.mutable_leaving()->mutable_ref() = h.Ref(id, rank);
  message.mutable_leaving()->set_reason("SIGTERM");
  return message;
}

TEST(RunEnd, AWorkerThatLeavesHasItsJobSavedAndGetsNoOther) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  JobSpec spec = SpecOf(2);
  spec.mutable_checkpoint()->set_directory("/c");
  const JobId id = h.Submit(spec);
  for (int r = 0; r < 2; ++r) h.Ready(id, r, on[r]);
  for (int r = 0; r < 2; ++r) h.Step(id, r, on[r], 1);
  h.ClearActions();
  h.Send(on[1], LeavingOf(h, id, 1));
  for (const WorkerId worker : on) {
    ASSERT_EQ(h.Sent(worker).size(), 1u);
    EXPECT_TRUE(h.Sent(worker)[0].stop().checkpoint());
  }
  for (int r = 0; r < 2; ++r) {
    h.Ended(id, r, on[r], {.ok = false, .stopped = true});
  }
  EXPECT_EQ(h.status(id).state(), CANCELLED);
  EXPECT_EQ(h.status(id).reason(),
            "w1 (rank 1) was asked to end (SIGTERM) after step 1; it could not "
            "be saved");
  ASSERT_EQ(h.cluster.workers().Idle().size(), 1u);
  EXPECT_EQ(h.cluster.workers().Idle()[0]->id, on[0]);
}

TEST(RunEnd, AWorkerThatLeavesBeforeTheFirstStepFailsItsJob) {
  Harness h;
  const WorkerId on = h.Join("w0");
  JobSpec spec = SpecOf(1);
  spec.mutable_checkpoint()->set_directory("/c");
  const JobId id = h.Submit(spec);
  h.Send(on, LeavingOf(h, id, 0));
  EXPECT_EQ(h.status(id).reason(),
            "w0 (rank 0) was asked to end (SIGTERM) in its start");
}

// Its GPU is of no use any more: it has nothing to save, says how the job
// ended, and is given nothing between that and its goodbye.
TEST(RunEnd, AWorkerThatCannotGoOnEndsItsJobAndGetsNoOther) {
  Harness h;
  const WorkerId on = h.Join("w0");
  const JobId id = h.Running({on});
  const JobId next = h.Submit(SpecOf(1));
  h.Step(id, 0, on, 1);
  WorkerMessage leaving;
  leaving.mutable_leaving()->set_reason("cuda:0 is of no use");
  h.Send(on, leaving);
  EXPECT_EQ(h.status(id).state(), RUNNING);
  h.Ended(id, 0, on, {.ok = false, .error = "step 2: an illegal address"});
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).reason(),
            "w0 (rank 0) failed in step 2: an illegal address");
  EXPECT_TRUE(h.cluster.workers().Idle().empty());
  EXPECT_EQ(h.status(next).state(), QUEUED);
  WorkerMessage goodbye;
  goodbye.mutable_goodbye()->set_reason("cuda:0 is of no use");
  h.Send(on, goodbye);
  EXPECT_EQ(h.worker(on).state(), WorkerStatus::LEFT);
  EXPECT_EQ(h.worker(on).reason(), "cuda:0 is of no use");
  const WorkerId again = h.Join("w0");
  EXPECT_EQ(h.worker(again).job(), next.value());
}

TEST(RunEnd, ALostWorkerFailsTheJobAtOnce) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Running(on);
  for (int step = 1; step <= 4; ++step) {
    for (int r = 0; r < 3; ++r) h.Step(id, r, on[r], step);
  }
  h.Disconnect(on[2], "connection closed");
  EXPECT_EQ(h.status(id).state(), STOPPING);
  EXPECT_EQ(h.status(id).reason(),
            "w2 (rank 2) was lost in step 5: connection closed");
  EXPECT_TRUE(ToldToStop(h, on[0], true));
  EXPECT_TRUE(ToldToStop(h, on[1], true));
  h.Ended(id, 0, on[0], {.ok = false, .error = "x", .missing_rank = 2});
  h.Ended(id, 1, on[1], {.ok = false, .error = "y", .missing_rank = 2});
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).reason(),
            "w2 (rank 2) was lost in step 5: connection closed");
  EXPECT_EQ(h.cluster.workers().Idle().size(), 2u);
}

TEST(RunEnd, TheCauseIsTheLostWorkerAlthoughItsPeersSpokeFirst) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Running(on);
  h.Ended(id, 0, on[0],
          {.ok = false, .error = "rank 1 did not come", .missing_rank = 1});
  EXPECT_EQ(h.status(id).reason(),
            "w0 (rank 0) failed in step 1: rank 1 did not come");
  h.Disconnect(on[1], "connection closed");
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).reason(),
            "w1 (rank 1) was lost in step 1: connection closed");
}

// What it was told is the reason of another.
TEST(RunEnd, ARankThatWasToldToStopSaysNoCause) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Running(on);
  h.Ended(id, 0, on[0],
          {.ok = false, .error = "no word from rank 1", .missing_rank = 1});
  const std::string cause = "w0 (rank 0) failed in step 1: no word from rank 1";
  for (const int rank : {1, 2}) {
    h.Ended(id, rank, on[rank], {.ok = false, .error = cause, .stopped = true});
  }
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).reason(), cause);
}

TEST(RunEnd, AStoppedWorkerFailsTheJobWithinTenSeconds) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Running(on);
  // Worker 1 says nothing more; worker 0 hangs in a collective with it.
  const absl::Time stopped = h.now;
  while (h.status(id).state() != FAILED) {
    h.Heartbeat(on[0]);
    h.Tick(absl::Milliseconds(200));
    ASSERT_LT(h.now - stopped, absl::Seconds(10));
  }
  EXPECT_EQ(h.status(id).reason().find("w1 (rank 1) was lost in step 1: not "),
            0u)
      << h.status(id).reason();
  // The other is free when it lets go.
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::BUSY);
  h.Ended(id, 0, on[0], {.ok = false, .error = "stopped"});
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
  EXPECT_EQ(h.job(id).run, nullptr);
}

TEST(RunEnd, AWorkerThatNeverLetsGoIsLost) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Running(on);
  h.Disconnect(on[1], "connection closed");
  h.Pass(absl::Seconds(31), {on[0]});
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::LOST);
  EXPECT_EQ(h.worker(on[0]).reason(), "did not let go of job 1 within 30s");
  EXPECT_EQ(h.job(id).run, nullptr);
}

TEST(RunEnd, AFailingRankFailsTheJob) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Running(on);
  h.Ended(id, 1, on[1], {.ok = false, .error = "no space left"});
  EXPECT_TRUE(ToldToStop(h, on[0], true));
  h.Ended(id, 0, on[0], {.ok = false, .error = "stopped"});
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).reason(),
            "w1 (rank 1) failed in step 1: no space left");
}

TEST(RunEnd, ARankThatSaysTheStepIsBelieved) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(1);
  const JobId id = h.Running(on);
  h.Ended(id, 0, on[0], {.ok = false, .error = "step 10: checkpoint: full"});
  EXPECT_EQ(h.status(id).reason(),
            "w0 (rank 0) failed in step 10: checkpoint: full");
}

TEST(RunEnd, ARankThatStopsEarlyFailsTheJob) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(1);
  const JobId id = h.Running(on);
  h.Ended(id, 0, on[0], {.ok = true, .step = 4});
  EXPECT_EQ(h.status(id).reason(), "w0 (rank 0) stopped after step 4 of 10");
}

TEST(RunEnd, AWorkerThatLeavesSaysSo) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(1);
  const JobId id = h.Running(on);
  WorkerMessage goodbye;
  goodbye.mutable_goodbye()->set_reason("asked to stop");
  h.Send(on[0], goodbye);
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::LEFT);
  EXPECT_EQ(h.status(id).reason(), "w0 (rank 0) left in step 1: asked to stop");
}

TEST(RunEnd, CancelWaitsUntilAllHaveLetGo) {
  for (const bool running : {false, true}) {
    Harness h;
    const std::vector<WorkerId> on = h.JoinMany(2);
    const JobId id = running ? h.Running(on) : h.Submit(SpecOf(2));
    EXPECT_TRUE(h.cluster.Cancel(id, h.now, h.actions).ok());
    EXPECT_EQ(h.status(id).state(), STOPPING);
    EXPECT_TRUE(ToldToStop(h, on[0], false));
    EXPECT_TRUE(h.cluster.Cancel(id, h.now, h.actions).ok()) << "again";
    h.Ended(id, 0, on[0], {.ok = true, .step = 3});
    EXPECT_EQ(h.status(id).state(), STOPPING);
    h.Ended(id, 1, on[1], {.ok = false, .error = "stopped"});
    EXPECT_EQ(h.status(id).state(), CANCELLED);
    EXPECT_TRUE(h.cluster.Cancel(id, h.now, h.actions).ok()) << "ended";
    EXPECT_EQ(h.status(id).state(), CANCELLED);
  }
}

TEST(RunEnd, AHangNamesWhoWasLastHeard) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Running(on);
  h.Pass(absl::Seconds(30), on);
  h.Step(id, 0, on[0], 1);
  h.Pass(absl::Seconds(60), on);
  EXPECT_EQ(h.status(id).state(), RUNNING);
  h.Pass(absl::Seconds(1), on);
  EXPECT_EQ(h.status(id).state(), STOPPING);
  EXPECT_EQ(h.status(id).reason(),
            "no progress for 1m in step 1; w1 (rank 1) is last: it reported "
            "step 0 1m31s ago");
}

TEST(RunEnd, AStartThatTakesTooLongNamesTheRank) {
  Harness h({.start_max = absl::Seconds(20)});
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Submit(SpecOf(2));
  h.Ready(id, 0, on[0]);
  h.Pass(absl::Seconds(21), on);
  EXPECT_EQ(h.status(id).reason(), "w1 (rank 1) was not ready within 20s");
}

TEST(RunEnd, LostWhileStartingIsSaidSo) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(1);
  const JobId id = h.Submit(SpecOf(1));
  h.Disconnect(on[0], "connection closed");
  EXPECT_EQ(h.status(id).reason(),
            "w0 (rank 0) was lost in its start: connection closed");
  EXPECT_EQ(h.status(id).state(), FAILED);
}

// The user asks twice, and the scheduler is started again in between or not.
TEST(RunEnd, AJobThatIsSavedToBeCancelledStaysOneThatIsSaved) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(1);
  JobSpec spec = SpecOf(1);
  spec.mutable_checkpoint()->set_directory("/c");
  const JobId id = h.Submit(spec);
  h.Ready(id, 0, on[0]);
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(h.cluster.SaveAndCancel(id, h.now, h.actions).ok());
    EXPECT_EQ(h.status(id).intent(), INTENT_SAVE_CANCEL);
  }
}

// What no test of the table foresees: a phase in which the next event has no
// edge. It is made by hand.
JobStatus& StatusOf(const Harness& h, JobId id) {
  return const_cast<JobStatus&>(h.status(id));
}

TEST(Defect, AMissingEdgeFailsTheJobAndFreesItsWorkers) {
  Harness h;
  const std::vector<WorkerId> on = h.JoinMany(4);
  const JobId broken = h.Running({on[0], on[1]});
  const JobId other = h.Running({on[2], on[3]});
  StatusOf(h, broken).set_phase(PHASE_QUEUED);
  h.Disconnect(on[0], "connection closed");
  EXPECT_EQ(h.status(broken).state(), FAILED);
  EXPECT_EQ(h.status(broken).reason(),
            "a defect of the scheduler: the job is Queued, with the intent to "
            "run, and the table of phases has no edge to Stopping by "
            "\"stopped\"; please report it with the job's events");
  h.Ended(broken, 1, on[1], {.ok = false, .error = "stop", .stopped = true});
  EXPECT_EQ(h.status(broken).phase(), PHASE_ENDED);
  EXPECT_EQ(h.worker(on[1]).state(), WorkerStatus::IDLE);
  EXPECT_EQ(h.status(other).state(), RUNNING);
  EXPECT_EQ(h.worker(on[1]).job(), 0);
  EXPECT_EQ(h.status(h.Submit(SpecOf(1))).state(), STARTING);
}

TEST(Defect, AJobWithoutWorkersFailsToo) {
  Harness h;
  const JobId id = h.Submit(SpecOf(1));
  StatusOf(h, id).set_phase(PHASE_LET_GO);
  h.Join("w0");
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_EQ(h.status(id).phase(), PHASE_ENDED);
  EXPECT_EQ(h.status(h.Submit(SpecOf(1))).state(), STARTING);
}

TEST(Defect, AJobBetweenAttemptsFailsToo) {
  RecoveryHarness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Recovering(on);
  h.Disconnect(on[0], "connection closed");
  h.EndsKeeping(id, 1, on[1], {});
  ASSERT_EQ(h.status(id).phase(), PHASE_AWAIT_PLACES);
  StatusOf(h, id).set_phase(PHASE_TRAINING);
  h.Join("w0");
  EXPECT_EQ(h.status(id).state(), FAILED) << h.status(id).reason();
  EXPECT_EQ(h.status(id).phase(), PHASE_ENDED);
  for (const auto& [worker, row] : h.cluster.workers().all()) {
    if (row.alive()) EXPECT_EQ(row.status.state(), WorkerStatus::IDLE);
  }
}

}  // namespace
}  // namespace troupe
