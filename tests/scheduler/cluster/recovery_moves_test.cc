// Jobs with `recovery` that are queued again, to go on with other workers.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/scheduler/cluster/recovery_harness.h"

namespace troupe {
namespace {

// A job of two ranks is saved, for w1 leaves, and the store has not answered.
struct JobThatIsSaved : RecoveryHarness {
  JobThatIsSaved() : w(JoinMany(2)), id(Recovering(w)) {
    AllStep(id, w, 1);
    stored_by_hand = true;
    Leaves(id, 1, w[1]);
    Commits(id, w[0], 1);
    for (const int rank : {1, 0}) EndsKeeping(id, rank, w[rank], {1});
  }

  const std::vector<WorkerId> w;
  const JobId id;
};

// It has not ended: what lies there is its own.
TEST(Recovery, AJobThatIsQueuedAgainKeepsItsDirectory) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(2);
  const JobId id = h.Recovering({w[0], w[1]});
  h.AllStep(id, w, 1);
  const JobId other = h.Submit(RecoveringSpec(1));
  WorkerMessage leaving;
  *leaving.mutable_leaving()->mutable_ref() = h.Ref(id, 1);
  h.Send(w[1], leaving);
  h.Commits(id, w[0], 1);
  h.EndsKeeping(id, 1, w[1], {1});
  h.EndsKeeping(id, 0, w[0], {1});
  EXPECT_EQ(h.status(id).state(), QUEUED);
  EXPECT_EQ(h.status(other).state(), QUEUED) << h.status(other).reason();
  EXPECT_TRUE(h.cluster.Cancel(id, h.now, h.actions).ok());
  h.Tick(absl::Seconds(1));
  EXPECT_EQ(h.status(other).state(), STARTING) << h.status(other).reason();
}

TEST(Recovery, AJobThatIsCancelledInTheQueueSaysWhatItHasDone) {
  for (const bool saved : {true, false}) {
    RecoveryHarness h;
    const std::vector<WorkerId> w = h.JoinMany(2);
    const JobId id = h.Recovering({w[0], w[1]});
    h.AllStep(id, w, 1);
    h.Commits(id, w[0], 1);
    h.AllStep(id, w, 2);
    h.cluster.Drain("asked to end", h.now, h.actions);
    if (saved) h.Commits(id, w[0], 2);
    h.EndsKeeping(id, 1, w[1], {});
    h.EndsKeeping(id, 0, w[0], {});
    ASSERT_EQ(h.status(id).state(), QUEUED);
    EXPECT_TRUE(h.cluster.Cancel(id, h.now, h.actions).ok());
    EXPECT_EQ(h.status(id).reason(),
              saved ? "after step 2; saved in /c/step-2"
                    : "after step 2; the newest checkpoint is of step 1: "
                      "/c/step-1");
  }
}

// The next scheduler may know of no checkpoint; but a full disk must not hold a
// worker that leaves.
TEST(Recovery, AJobThatMovesKeepsItsCopiesUntilItIsStoredThatItIsSaved) {
  for (const bool full : {false, true}) {
    JobThatIsSaved h;
    EXPECT_TRUE(h.Forgotten(h.w[0]).empty());
    EXPECT_TRUE(h.Forgotten(h.w[1]).empty());
    h.Stored(
        h.All<AwaitStored>().back(),
        full ? absl::ResourceExhaustedError("disk full") : absl::OkStatus());
    EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
    EXPECT_EQ(h.Forgotten(h.w[0]), std::vector<int>{1});
    EXPECT_EQ(h.Forgotten(h.w[1]), std::vector<int>{1});
  }
}

// What it saves is a checkpoint, whatever becomes of the scheduler's disk.
TEST(Recovery, AJobThatMovesDoesNotWaitForAStoreThatDoesNotAnswer) {
  JobThatIsSaved h;
  EXPECT_TRUE(absl::StrContains(
      h.status(h.id).reason(),
      "waits until it is stored that the checkpoint of step 1 is there; w1 "
      "(rank 1) was asked to end"))
      << h.status(h.id).reason();
  h.Pass(Limits().start_max + absl::Seconds(2), h.w);
  EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
  EXPECT_EQ(h.Forgotten(h.w[0]), std::vector<int>{1});
  EXPECT_EQ(h.Forgotten(h.w[1]), std::vector<int>{1});
}

// What is to be saved is.
TEST(Recovery, AJobThatMovesIsCancelledWithoutAWordFromTheStore) {
  JobThatIsSaved h;
  EXPECT_TRUE(h.cluster.SaveAndCancel(h.id, h.now, h.actions).ok());
  EXPECT_EQ(h.status(h.id).state(), CANCELLED) << h.status(h.id).reason();
  EXPECT_EQ(h.status(h.id).reason(),
            "cancelled by its user after step 1; saved in /c/step-1");
}

// Refused its directory, it is refused again: what lies there is another's.
TEST(Recovery, AJobThatNeverRanHasNotRunBefore) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(2);
  const JobId id = h.Submit(RecoveringSpec(2));
  h.EndsKeeping(id, 0, w[0], {}, "checkpoint.directory: an earlier run left 3");
  h.EndsKeeping(id, 1, w[1], {});
  EXPECT_EQ(h.Begun(w[0]).ref().attempt(), 2);
  EXPECT_FALSE(h.Begun(w[0]).ran_before());
}

// With copies and a checkpoint's place, a worker that leaves costs nothing.
TEST(Recovery, AJobThatAWorkerLeavesGoesOnWithOthers) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  h.AllStep(id, {w[0], w[1]}, 1);
  WorkerMessage leaving;
  *leaving.mutable_leaving()->mutable_ref() = h.Ref(id, 1);
  leaving.mutable_leaving()->set_reason("SIGTERM");
  h.Send(w[1], leaving);
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  h.AllStep(id, {w[0], w[1]}, 2);
  h.Commits(id, w[0], 2);
  h.EndsKeeping(id, 1, w[1], {1});
  h.SaysGoodbye(w[1]);
  EXPECT_FALSE(h.Sent(w[0]).back().stop().peers_gone()) << "it is no loss";
  h.EndsKeeping(id, 0, w[0], {1});
  EXPECT_EQ(h.Begun(w[2]).resume(), "/c/step-2");
  EXPECT_EQ(h.status(id).restarts(), 0);
  h.AllReady(id, {w[0], w[2]}, 3);
}

// The disk may be full for hours, and the worker that leaves cannot wait: the
// job goes on from its copies.
TEST(Recovery, AJobThatMovesDoesNotWaitForAFullDisk) {
  RecoveryHarness h;
  const std::vector<WorkerId> w = h.JoinMany(3);
  const JobId id = h.Recovering({w[0], w[1]});
  h.AllStep(id, {w[0], w[1]}, 1);
  h.Leaves(id, 1, w[1]);
  for (const int rank : {1, 0}) {
    WorkerMessage message;
    CheckpointUnwritten& unwritten = *message.mutable_unwritten();
    *unwritten.mutable_ref() = h.Ref(id, rank);
    unwritten.set_step(1);
    unwritten.set_write(1);
    unwritten.set_error("rank-00001: write: ENOSPC");
    h.Send(w[rank], message);
  }
  EXPECT_TRUE(h.Sent(w[0]).back().stop().peers_gone()) << "without saving";
  for (const int rank : {1, 0}) h.EndsKeeping(id, rank, w[rank], {1});
  EXPECT_TRUE(h.Says(id, "goes on as it is, for it could not be saved"));
  EXPECT_EQ(h.Begun(w[2]).recovery().state().step(), 1);
  EXPECT_EQ(h.status(id).restarts(), 0);
}

}  // namespace
}  // namespace troupe
