// Edges of the table of phases that few seeds of the simulated cluster take, or
// none, after the scheduler was started again.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/phase.h"
#include "tests/scheduler/cluster/restart_harness.h"

namespace troupe {
namespace {

bool Took(const Harness& h, JobPhase from, PhaseEvent event) {
  const int edge = NextPhaseEdge(from, INTENT_RUN, event);
  return edge >= 0 && h.cluster.jobs().edges_taken()[edge] > 0;
}

TEST(RunAdoptEdges, AStartThatWasCutBeginsAnew) {
  Harness before;
  before.JoinMany(2);
  const JobId id = before.Submit(SpecOf(2));
  const auto h = Restarted(before);
  ComeBack(*h, "w0", HeldOf(id, 0, /*first_step=*/0));
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id, 1, /*first_step=*/0));
  EXPECT_EQ(h->status(id).phase(), PHASE_STARTING);
  // By the scheduler before this one, which could not write why.
  h->Ended(id, 1, w1, {.ok = false, .error = "cancelled", .stopped = true});
  EXPECT_TRUE(Took(*h, PHASE_STARTING, PhaseEvent::kStartCut));
  EXPECT_EQ(h->status(id).attempt(), 2);
}

// The last row that was written says that all ranks have ended, and not yet
// that the job has.
TEST(RunAdoptEdges, AJobWhoseRanksHaveAllEndedHasSucceeded) {
  Harness before;
  const JobId id = before.Running(before.JoinMany(2));
  std::vector<StoredJob> stored = StoredBy(before);
  for (const int rank : {0, 1}) {
    EndedRank& ended = *stored[0].row.status.add_ended_ranks();
    ended.set_rank(rank);
    ended.set_step(10);
  }
  Harness h;
  h.cluster.Restore(std::move(stored), h.now, h.actions);
  EXPECT_TRUE(Took(h, PHASE_ADOPTING, PhaseEvent::kAllLetGo));
  EXPECT_EQ(h.status(id).state(), SUCCEEDED) << h.status(id).reason();
}

// A rank that had so little to do that it ended before the others were ready.
TEST(RunAdoptEdges, AStartInWhichARankHasEndedIsOneLikeAnyOther) {
  Harness before;
  const std::vector<WorkerId> on = before.JoinMany(2);
  const JobId id = before.Submit(SpecOf(2));
  before.Ready(id, 0, on[0]);
  before.Ended(id, 0, on[0], {});
  EXPECT_EQ(before.status(id).phase(), PHASE_STARTING);
  const auto h = Restarted(before);
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id, 1));
  EXPECT_EQ(h->status(id).phase(), PHASE_STARTING);
  h->Ready(id, 1, w1);
  EXPECT_EQ(h->status(id).state(), RUNNING) << h->status(id).reason();
  h->Ended(id, 1, w1, {});
  EXPECT_TRUE(Took(*h, PHASE_TRAINING, PhaseEvent::kAllLetGo));
  EXPECT_EQ(h->status(id).phase(), PHASE_ENDED);
  EXPECT_EQ(h->status(id).state(), SUCCEEDED) << h->status(id).reason();
}

// A scheduler that was started with another state, or none, or whose address is
// that of another cluster's: what it does not know is not its to end.
TEST(RunAdoptForeign, ARankOfAnotherClusterIsRefused) {
  Harness h;
  h.cluster.RestoreId("aaaa");
  Register request = RegisterOf("w0");
  *request.mutable_held() = HeldOf(JobId(1), 0);
  request.mutable_held()->set_cluster_id("bbbb");
  const auto refused = h.cluster.RegisterWorker(request, h.now, h.actions);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_EQ(refused.status().message(),
            "the worker w0 holds rank 0 of job 1 of the cluster bbbb, and this "
            "scheduler is of the cluster aaaa: it was started with another "
            "--state directory, or the worker was sent to another cluster's "
            "scheduler. Start the scheduler with the state of that cluster, "
            "and the rank is taken back; or end the worker, which gives the "
            "rank up");
  EXPECT_TRUE(h.actions.empty());
  EXPECT_EQ(h.cluster.workers().alive_count(), 0);
  // One that holds nothing is anybody's.
  request.clear_held();
  EXPECT_TRUE(h.cluster.RegisterWorker(request, h.now, h.actions).ok());
}

TEST(RunAdoptForeign, TheSameClusterSaysWhatItKnows) {
  Harness before;
  before.cluster.RestoreId("aaaa");
  const std::vector<WorkerId> on = before.JoinMany(2);
  EXPECT_EQ(before.Sent(on[0])[0].registered().cluster_id(), "aaaa");
  const JobId id = before.Running(on);
  Harness after;
  after.cluster.RestoreId("aaaa");
  after.cluster.Restore(StoredBy(before), after.now, after.actions);
  HeldRank held = HeldOf(id, 0);
  held.set_cluster_id("aaaa");
  held.set_run_id(before.status(id).run_id());
  EXPECT_EQ(ForgottenFor(after, ComeBack(after, "w0", held)), "");
  // A scheduler before protocol 22 gave none.
  HeldRank of_old = HeldOf(id, 1);
  EXPECT_EQ(ForgottenFor(after, ComeBack(after, "w1", of_old)), "");
  HeldRank unknown = held;
  unknown.mutable_ref()->set_job(77);
  EXPECT_EQ(ForgottenFor(after, ComeBack(after, "x", unknown)),
            "there is no job 77");
}

// An older copy of the store was put back, and the job's number given anew.
TEST(RunAdoptForeign, ARunOfAnotherIdIsAnotherOne) {
  Harness before;
  const JobId id = before.Running(before.JoinMany(2));
  const auto h = Restarted(before);
  HeldRank held = HeldOf(id, 0);
  held.set_run_id("of another run");
  EXPECT_EQ(ForgottenFor(*h, ComeBack(*h, "w0", held)),
            absl::StrCat("job ", id.value(), " is another one here"));
}

}  // namespace
}  // namespace troupe
