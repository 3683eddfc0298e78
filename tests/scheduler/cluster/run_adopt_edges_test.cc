// Edges of the table of phases that few seeds of the simulated cluster take, or
// none, after the scheduler was started again; and what is said of a worker
// that came back without its rank.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/hand_out.h"
#include "scheduler/cluster/phase.h"
#include "tests/scheduler/cluster/recovery_harness.h"
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
            "and the rank is taken back; or, where that state is lost, with "
            "that id in the file cluster_id of its --state directory, and the "
            "rank is ended; or end the worker, which gives the rank up");
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
  // All schedulers that it can have been of gave it one
  // (kOldestProtocolVersion).
  Register nameless = RegisterOf("w1");
  *nameless.mutable_held() = HeldOf(id, 1);
  const auto refused =
      after.cluster.RegisterWorker(nameless, after.now, after.actions);
  EXPECT_TRUE(absl::StrContains(
      refused.status().message(),
      "rank 1 of job 1 of a cluster that it does not name, and this scheduler "
      "is of the cluster aaaa"))
      << refused.status();
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

// The store has what ranks of another attempt were handed, or a damaged row.
TEST(RunAdoptEdges, AHandOutOfAnotherPlanIsNone) {
  RecoveryHarness before;
  const std::vector<WorkerId> on = before.JoinMany(2);
  const JobId id = before.Recovering(on);
  before.AllStep(id, on, 1);
  before.Disconnect(on[1], "connection closed");
  before.EndsKeeping(id, 0, on[0], {1});
  std::vector<StoredJob> stored = StoredBy(before);
  auto other = std::make_shared<HandOut>(*stored[0].hand_out);
  auto plan = std::make_shared<Plan>(*other->plan);
  plan->set_fingerprint("fedcba9876543210");
  other->plan = std::move(plan);
  stored[0].hand_out = std::move(other);
  RecoveryHarness h;
  h.cluster.Restore(std::move(stored), h.now, h.actions);
  EXPECT_EQ(h.status(id).state(), QUEUED) << h.status(id).reason();
}

// Some of its ranks had heard that they are to save and stop, and others not.
TEST(RunAdoptEdges, AJobThatWasMovedRecoversFromWhatItsRanksKeep) {
  RecoveryHarness before;
  const std::vector<WorkerId> on = before.JoinMany(2);
  const JobId id = before.Recovering(on);
  before.AllStep(id, on, 1);
  before.Leaves(id, 1, on[1]);
  ASSERT_EQ(before.status(id).intent(), INTENT_SAVE_MOVE);
  const auto h = Restarted(before);
  const WorkerId w0 = ComeBack(*h, "w0", HeldOf(id, 0, 1, 1));
  const WorkerId w1 = ComeBack(*h, "w1", HeldOf(id, 1, 1, 1));
  EXPECT_EQ(h->status(id).intent(), INTENT_RECOVER);
  h->EndsKeeping(id, 0, w0, {1});
  h->EndsKeeping(id, 1, w1, {1});
  EXPECT_EQ(h->status(id).attempt(), 2) << h->status(id).reason();
  EXPECT_EQ(h->Begun(w1).recovery().state().step(), 1);
}

// Of a job in its second attempt on w0 and w1, whose ranks are ready or not,
// when w0 is back and w1 registers with this process and this rank.
std::string WhyWithout(bool ready, int64_t pid, const HeldRank& held) {
  RecoveryHarness before;
  const std::vector<WorkerId> on = before.JoinMany(2);
  const JobId id = before.Recovering(on, /*restarts=*/9);
  before.AllStep(id, on, 1);
  before.EndsKeeping(id, 1, on[1], {1}, "bad luck");
  before.EndsKeeping(id, 0, on[0], {1});
  EXPECT_EQ(before.status(id).attempt(), 2);
  if (ready) before.AllReady(id, on, 2);
  const auto h = Restarted(before);
  ComeBack(*h, "w0", HeldOf(id, 0, ready ? 2 : 0, 1, 2));
  Register request = RegisterOf("w1");
  request.set_pid(pid);
  if (held.has_ref()) *request.mutable_held() = held;
  EXPECT_TRUE(h->cluster.RegisterWorker(request, h->now, h->actions).ok());
  h->Compile();
  const std::string& said = h->status(id).reason();
  const size_t colon = said.find(": ");
  EXPECT_EQ(said.substr(0, colon),
            absl::StrCat("the scheduler restarted, and w1 (rank 1) came back "
                         "without its rank in ",
                         ready ? "step 2" : "its recovery"));
  return colon == std::string::npos ? "" : said.substr(colon + 2);
}

TEST(RunAdoptWhy, AProcessThatWasStartedAgainHasNoRank) {
  EXPECT_EQ(WhyWithout(/*ready=*/true, 4711, {}),
            "its process was started again (it is process 4711 now)");
  EXPECT_EQ(WhyWithout(/*ready=*/true, /*pid=*/0, {}),
            "its process was started again");
}

TEST(RunAdoptWhy, InAStartAWorkerMayNotHaveHeardOfTheAttempt) {
  EXPECT_EQ(WhyWithout(/*ready=*/false, 4711, {}),
            "it had not heard of attempt 2, or its process was started again "
            "(it is process 4711 now)");
}

// What the store has of job 2 is older than that w0 went to job 1.
TEST(RunAdoptWhy, OneThatIsTakenBackByAnotherJobIsAwaitedNoMore) {
  Harness before;
  const std::vector<WorkerId> on = before.JoinMany(4);
  const JobId one = before.Running({on[0], on[1]});
  const JobId two = before.Running({on[2], on[3]});
  std::vector<StoredJob> stored = StoredBy(before);
  ASSERT_EQ(stored[1].row.status.id(), two.value());
  stored[1].row.status.set_workers(0, "w0");
  Harness h;
  h.cluster.Restore(std::move(stored), h.now, h.actions);
  const WorkerId w0 = ComeBack(h, "w0", HeldOf(one, 0));
  EXPECT_EQ(h.worker(w0).job(), one.value());
  EXPECT_EQ(h.status(two).state(), STOPPING);
  EXPECT_EQ(h.status(two).reason(),
            "the scheduler restarted, and w0 (rank 0) came back without its "
            "rank in step 1: it has rank 0 of attempt 1 of job 1; it had no "
            "checkpoint yet");
}

TEST(RunAdoptWhy, AWorkerWithAnotherRankSaysWhich) {
  EXPECT_EQ(WhyWithout(true, 4711, HeldOf(JobId(7), 3, 1, 5, 4)),
            "it has rank 3 of attempt 4 of job 7");
  HeldRank other = HeldOf(JobId(1), 1, 2, 1, 2);
  other.set_fingerprint("fedcba9876543210");
  EXPECT_EQ(WhyWithout(true, 4711, other),
            "it has rank 1 of attempt 2 of job 1, of another plan");
  // An older copy of the store was put back, and the number given anew.
  other = HeldOf(JobId(1), 1, 2, 1, 2);
  other.set_run_id("of another run");
  EXPECT_EQ(WhyWithout(true, 4711, other),
            "it has rank 1 of attempt 2 of job 1, of another run of that "
            "number");
  EXPECT_EQ(WhyWithout(true, 4711, HeldOf(JobId(1), 0, 2, 1, 2)),
            "it has rank 0 of attempt 2 of job 1");
}

}  // namespace
}  // namespace troupe
