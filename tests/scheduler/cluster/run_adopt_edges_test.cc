// Edges of the table of phases that few seeds of the simulated cluster take, or
// none, after the scheduler was started again.
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace troupe
