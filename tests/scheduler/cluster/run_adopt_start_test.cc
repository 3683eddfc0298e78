// A scheduler that was started again while jobs that recover were in a start.
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/recovery_harness.h"
#include "tests/scheduler/cluster/restart_harness.h"

namespace troupe {
namespace {

// A job on two workers that is in its second attempt, the last one that
// `restarts` allows or not. It goes on from a checkpoint of the last step, so
// that a rank has nothing to do; rank 0 has ended.
struct AtItsEnd {
  explicit AtItsEnd(int restarts) : on(before.JoinMany(2)) {
    id = before.Recovering(on, restarts);
    for (int64_t step = 1; step <= 10; ++step) before.AllStep(id, on, step);
    before.Commits(id, on[0], 10);
    before.EndsKeeping(id, 1, on[1], {}, "bad luck");
    before.EndsKeeping(id, 0, on[0], {});
    before.Ready(id, 0, on[0], 11);
    before.Ended(id, 0, on[0], {});
    CHECK_EQ(before.status(id).state(), RECOVERING);
    CHECK_EQ(before.status(id).phase(), PHASE_STARTING);
  }

  RecoveryHarness before;
  std::vector<WorkerId> on;
  JobId id;
};

TEST(RunAdoptAtItsEnd, WhoEndedInTheStartOfTheLastAttemptWasReady) {
  AtItsEnd a(/*restarts=*/1);
  const auto h = Restarted(a.before);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(a.id, 1, 0, 0, 2));
  h->Ready(a.id, 1, w1, 11);
  EXPECT_EQ(h->status(a.id).state(), RUNNING) << h->status(a.id).reason();
  EXPECT_EQ(h->job(a.id).events.back().text(),
            "recovered: goes on with step 11");
  h->Ended(a.id, 1, w1, {});
  EXPECT_EQ(h->status(a.id).state(), SUCCEEDED) << h->status(a.id).reason();
}

// It kept its place for an attempt that might follow.
TEST(RunAdoptAtItsEnd, WhoEndedInAStartNeedNotComeBack) {
  AtItsEnd a(/*restarts=*/9);
  const auto h = Restarted(a.before);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(a.id, 1, 0, 0, 2));
  h->Ready(a.id, 1, w1, 11);
  EXPECT_EQ(h->status(a.id).state(), RECOVERING) << "w0 may come back";
  h->Pass(AfterAdoptMax(), {w1});
  EXPECT_EQ(h->status(a.id).state(), RUNNING) << h->status(a.id).reason();
  h->Ended(a.id, 1, w1, {});
  EXPECT_EQ(h->status(a.id).state(), SUCCEEDED) << h->status(a.id).reason();
}

TEST(RunAdoptAtItsEnd, WhoComesBackToAStartAndIsLostHasEndedAllTheSame) {
  AtItsEnd a(/*restarts=*/9);
  const auto h = Restarted(a.before);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(a.id, 0, 11, 10, 2));
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(a.id, 1, 0, 0, 2));
  h->Ready(a.id, 1, w1, 11);
  h->Disconnect(w0, "connection closed");
  EXPECT_EQ(h->status(a.id).state(), RUNNING) << h->status(a.id).reason();
  h->Ended(a.id, 1, w1, {});
  EXPECT_EQ(h->status(a.id).state(), SUCCEEDED) << h->status(a.id).reason();
}

// In the start of the second attempt of a job on two workers.
struct InAStart : RecoveryHarness {
  InAStart() : on(JoinMany(2)), id(Recovering(on)) {
    AllStep(id, on, 1);
    EndsKeeping(id, 1, on[1], {1}, "bad luck");
    EndsKeeping(id, 0, on[0], {1});
    CHECK_EQ(status(id).phase(), PHASE_STARTING);
  }

  std::vector<WorkerId> on;
  JobId id;
};

TEST(RunAdoptInAStart, TheIntentToCancelIsStoredWithTheStop) {
  InAStart h;
  h.ClearActions();
  ASSERT_TRUE(h.cluster.SaveAndCancel(h.id, h.now, h.actions).ok());
  for (const PersistJob& stored : h.All<PersistJob>()) {
    const JobStatus& status = stored.row->status;
    EXPECT_TRUE(status.intent() != INTENT_SAVE_CANCEL ||
                status.phase() != PHASE_STARTING)
        << status.ShortDebugString();
  }
}

// As a build before this one may have left it.
TEST(RunAdoptInAStart, AnIntentToCancelThatWasStoredAloneIsCarriedOut) {
  InAStart before;
  std::vector<StoredJob> stored = StoredBy(before);
  stored[0].row.status.set_intent(INTENT_SAVE_CANCEL);
  stored[0].row.status.set_save_why("cancelled by its user");
  RecoveryHarness h;
  h.now = before.now;
  h.cluster.Restore(std::move(stored), h.now, h.actions);
  const WorkerId w0 = ComeBack(h, "w0", HeldOf(before.id, 0, 0, 0, 2));
  const WorkerId w1 = ComeBack(h, "w1", HeldOf(before.id, 1, 0, 0, 2));
  EXPECT_EQ(h.status(before.id).phase(), PHASE_STOPPING);
  EXPECT_TRUE(h.Sent(w0).back().stop().checkpoint());
  EXPECT_TRUE(h.Sent(w1).back().stop().checkpoint());
}

}  // namespace
}  // namespace troupe
