// A scheduler that was started again, and checkpoints that are reported to it
// once more: each is stored with the steps that it has.
#include <vector>

#include "gtest/gtest.h"
#include "scheduler/cluster/run_control.h"
#include "tests/scheduler/cluster/recovery_harness.h"
#include "tests/scheduler/cluster/restart_harness.h"

namespace troupe {
namespace {

// Two workers run a job that recovers, and has finished five steps.
class RunAdoptCommits : public testing::Test {
 protected:
  RunAdoptCommits() : on_(before_.JoinMany(2)), id_(before_.Recovering(on_)) {
    for (int64_t step = 1; step <= 5; ++step) before_.AllStep(id_, on_, step);
  }

  RecoveryHarness before_;
  std::vector<WorkerId> on_;
  JobId id_;
};

// The scheduler may be killed once more before it knows whether the other rank
// comes back: it has stored the checkpoint, and so the steps before it.
TEST_F(RunAdoptCommits, StepsThatAreInTheCheckpointOutliveWhoSaidThem) {
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 7));
  for (const int64_t step : {6, 7}) h->Step(id_, 0, w0, step);
  h->Commits(id_, w0, 6);
  EXPECT_EQ(h->status(id_).steps_done(), 5) << "rank 1 may say more of step 6";
  h->Disconnect(w0, "connection closed");
  const StoredJob stored = StoredBy(*h).at(0);
  EXPECT_EQ(NewestCheckpoint(stored.row.status), 6);
  ASSERT_EQ(stored.steps.size(), 1);
  EXPECT_EQ(stored.steps[0].step(), 6) << "step 7 runs again";
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 1, 7));
  h->Step(id_, 1, w1, 6);
  EXPECT_EQ(StoredBy(*h).at(0).steps.size(), 1) << "each comes out once";
}

// Rank 0's worker and the scheduler may die together, before either could say
// that the other is gone: a stored checkpoint has all steps before it.
TEST_F(RunAdoptCommits, ACheckpointIsNotStoredBeforeTheStepsThatItHas) {
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 7));
  for (const int64_t step : {6, 7}) h->Step(id_, 0, w0, step);
  h->Commits(id_, w0, 6);
  EXPECT_EQ(h->status(id_).steps_done(), 5) << "rank 1 may say more of step 6";
  for (const StoredJob& stored : StoredBy(*h)) {
    EXPECT_EQ(NewestCheckpoint(stored.row.status), -1)
        << "the next scheduler would begin with step 7, and nobody say step 6";
  }
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id_, 1, 1, 7));
  h->Step(id_, 1, w1, 6);
  EXPECT_EQ(h->status(id_).steps_done(), 6);
  EXPECT_EQ(NewestCheckpoint(h->status(id_)), 6);
}

// Rank 1 does not come back: the checkpoint is stored when it is given up.
TEST_F(RunAdoptCommits, ACheckpointIsStoredWhereNobodySaysMoreOfItsSteps) {
  const auto h = Restarted(before_);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id_, 0, 1, 7));
  for (const int64_t step : {6, 7}) h->Step(id_, 0, w0, step);
  h->Commits(id_, w0, 6);
  h->Pass(AfterAdoptMax(), {w0});
  const StoredJob stored = StoredBy(*h).at(0);
  EXPECT_EQ(NewestCheckpoint(stored.row.status), 6);
  ASSERT_EQ(stored.steps.size(), 1);
  EXPECT_EQ(stored.steps[0].step(), 6);
}

}  // namespace
}  // namespace troupe
