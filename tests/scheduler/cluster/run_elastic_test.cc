// Jobs with `elastic`: what becomes of them with fewer workers than ranks, and
// when others come.
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/elastic_harness.h"

namespace troupe {
namespace {

TEST(Elastic, AWorkerThatComesInTimeTakesThePlace) {
  Elastic h;
  h.LoseTheLast({2});
  const WorkerId late = h.Join("w3");
  EXPECT_EQ(h.Begun(late).recovery().state().step(), 2);
  EXPECT_EQ(h.Begun(late).ref().rank(), 2);
}

TEST(Elastic, GoesOnFromTheNewestCheckpointWhereNoCopiesAreNewer) {
  Elastic h;
  h.Commits(h.id, h.w[0], 2);
  h.LoseTheLast({2});
  h.Calm();
  EXPECT_TRUE(h.Asked(h.w[0]).empty());
  EXPECT_EQ(h.status(h.id).state(), STARTING);
  EXPECT_EQ(h.Begun(h.w[0]).resume(), "/c/step-2");
}

TEST(Elastic, OneThatLostAllOfItsWorkersGoesOnWithThoseThatCome) {
  Elastic h;
  for (const WorkerId worker : h.w) h.Disconnect(worker, "connection closed");
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  const WorkerId come = h.Join("w3");
  h.Calm();
  EXPECT_EQ(h.status(h.id).state(), STARTING) << h.status(h.id).reason();
  EXPECT_EQ(h.status(h.id).workers_size(), 1);
  EXPECT_EQ(h.Begun(come).ref().attempt(), 2);
}

TEST(Elastic, WaitsForAsManyAsItNeeds) {
  Elastic h(/*min_workers=*/3);
  h.LoseTheLast({2});
  h.Calm();
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  EXPECT_TRUE(h.Asked(h.w[0]).empty());
}

// It took too long for one; for two that would be no better, and three are all.
TEST(Elastic, AllThatComeDuringALongPlanningForFewerAreAskedFor) {
  for (const bool all : {false, true}) {
    RecoveryHarness h;
    h.Join("w0");
    JobSpec spec = RecoveringSpec(3);
    spec.mutable_elastic()->set_min_workers(1);
    const JobId id = h.Submit(spec);
    h.by_hand = true;
    h.Tick(absl::Seconds(3));
    const CompileJob asked = h.All<CompileJob>().back();
    h.Join("w1");
    if (all) h.Join("w2");
    h.ClearActions();
    h.EndsTooLate(asked);
    const std::vector<CompileJob> again = h.All<CompileJob>();
    EXPECT_EQ(again.size(), all ? 1u : 0u) << h.status(id).reason();
    h.by_hand = false;
    if (all) h.Compiled(again.back());
    EXPECT_EQ(h.status(id).state(), all ? STARTING : QUEUED);
  }
}

TEST(Elastic, BeginsWithFewerWhereThereAreNoMore) {
  RecoveryHarness h;
  h.Join("w0");
  h.Join("w1");
  JobSpec spec = RecoveringSpec(3);
  spec.mutable_elastic()->set_min_workers(2);
  const JobId id = h.Submit(spec);
  EXPECT_EQ(h.status(id).state(), QUEUED);
  h.Tick(absl::Seconds(3));
  EXPECT_EQ(h.status(id).state(), STARTING) << h.status(id).reason();
  EXPECT_EQ(h.status(id).workers_size(), 2);
}

TEST(Elastic, WaitsWhereNoPlanForFewerFits) {
  RecoveryHarness h;
  h.Join("w0");
  JobSpec spec = RecoveringSpec(2);
  spec.mutable_elastic();
  spec.mutable_model()->set_hidden_size(5000);  // bytes; a worker has 1000
  const JobId id = h.Submit(spec);
  h.Tick(absl::Seconds(3));
  EXPECT_EQ(h.status(id).state(), QUEUED);
  EXPECT_EQ(h.status(id).reason(),
            "waits for more workers: model.hidden_size: rank 0 needs more "
            "memory");
}

TEST(Elastic, SaysWhatItWaitsForAgainAfterAnotherWait) {
  RecoveryHarness h;
  h.Join("w0");
  JobSpec spec = RecoveringSpec(2);
  spec.mutable_elastic();
  spec.mutable_model()->set_hidden_size(5000);  // bytes; a worker has 1000
  const JobId id = h.Submit(spec);
  h.Tick(absl::Seconds(3));
  const std::string reason = h.status(id).reason();
  const absl::Status full = absl::ResourceExhaustedError("disk full");
  h.Stored(AwaitStored(), full);
  EXPECT_NE(h.status(id).reason(), reason);
  h.Stored(AwaitStored());
  EXPECT_EQ(h.status(id).reason(), reason);
}

// There are not as many workers as it has ranks: it does not wait for its turn.
TEST(Elastic, OneThatNoPlanForFewerFitsHoldsNobodyBack) {
  RecoveryHarness h;
  h.Join("w0");
  JobSpec spec = RecoveringSpec(2);
  spec.mutable_elastic();
  spec.mutable_model()->set_hidden_size(5000);  // bytes; a worker has 1000
  const JobId large = h.Submit(spec);
  h.Tick(absl::Seconds(3));
  EXPECT_EQ(h.status(large).state(), QUEUED);
  const JobId small = h.Submit(SpecOf(1));
  EXPECT_EQ(h.status(small).state(), STARTING) << h.status(small).reason();
}

TEST(Elastic, OneThatCannotBeCutForFewerHoldsNobodyBack) {
  RecoveryHarness h;
  for (const char* name : {"w0", "w1"}) h.Join(name);
  JobSpec spec = RecoveringSpec(3);
  spec.mutable_elastic()->set_min_workers(2);
  spec.set_name("whole");
  const JobId whole = h.Submit(spec);
  h.Tick(absl::Seconds(3));
  EXPECT_EQ(h.status(whole).reason(),
            "waits for more workers: the job cannot be cut for 2");
  const JobId small = h.Submit(SpecOf(1));
  EXPECT_EQ(h.status(small).state(), STARTING) << h.status(small).reason();
}

// As many workers are idle as the job has ranks; but one is too small.
TEST(Elastic, AWorkerThatIsTooSmallHarmsNoJob) {
  for (const bool elastic : {true, false}) {
    RecoveryHarness h;
    h.JoinWith("w-small", 10);
    std::vector<WorkerId> w = h.JoinMany(3);
    JobSpec spec = RecoveringSpec(3);
    spec.mutable_model()->set_hidden_size(500);
    if (elastic) spec.mutable_elastic()->set_min_workers(2);
    const JobId id = h.Submit(spec);
    h.AllReady(id, w, 1);
    h.AllStep(id, w, 1);
    WorkerMessage leaving;
    *leaving.mutable_leaving()->mutable_ref() = h.Ref(id, 2);
    h.Send(w[2], leaving);
    h.Commits(id, w[0], 1);
    h.EndsKeeping(id, 2, w[2], {1});
    h.SaysGoodbye(w[2]);
    h.EndsKeeping(id, 0, w[0], {1});
    h.EndsKeeping(id, 1, w[1], {1});
    if (elastic) {
      EXPECT_EQ(h.status(id).state(), STARTING) << h.status(id).reason();
      EXPECT_EQ(h.status(id).workers_size(), 2);
      h.AllReady(id, {w[0], w[1]}, 2);
      continue;
    }
    EXPECT_EQ(h.status(id).state(), QUEUED);
    EXPECT_EQ(h.status(id).reason(),
              "waits for workers that it fits on: model.hidden_size: rank 0 "
              "needs more memory");
    const JobId other = h.Submit(SpecOf(1));
    EXPECT_EQ(h.status(other).state(), STARTING) << "it holds nobody back";
    h.Ended(other, 0, w[0], {.error = "a bad value"});
    EXPECT_EQ(h.status(id).state(), QUEUED);
    const WorkerId late = h.Join("w3");
    EXPECT_EQ(h.status(id).state(), STARTING) << h.status(id).reason();
    EXPECT_EQ(h.Begun(late).ref().job(), id.value());
  }
}

// No worker changes what the planner has against the job itself, but in what
// fewer ranks may need.
TEST(Elastic, AJobThatHasRunAndHasNoPlanAnyMoreFails) {
  struct Case {
    bool elastic = false;
    std::set<int> refused_ranks;
    JobState state;
    std::string reason;
  };
  const std::string no_plan = "parallelism.data: no plan has 3 ranks";
  const Case cases[] = {
      {false, {3}, FAILED, no_plan},
      {true, {2, 3}, FAILED, no_plan},
      {true,
       {3},
       QUEUED,
       "waits for workers that it fits on: model.hidden_size: rank 0 needs "
       "more memory"}};
  for (const Case& c : cases) {
    RecoveryHarness h;
    const std::vector<WorkerId> w = h.JoinMany(4);
    JobSpec spec = RecoveringSpec(3);
    spec.mutable_model()->set_hidden_size(c.elastic ? 2500 : 0);
    if (c.elastic) spec.mutable_elastic()->set_min_workers(2);
    const JobId id = h.Submit(spec);
    h.AllReady(id, {w[0], w[1], w[2]}, 1);
    h.AllStep(id, {w[0], w[1], w[2]}, 1);
    h.compiler.refused_ranks = c.refused_ranks;
    h.Leaves(id, 2, w[2]);
    h.Commits(id, w[0], 1);
    for (const int rank : {0, 1, 2}) h.EndsKeeping(id, rank, w[rank], {1});
    EXPECT_EQ(h.status(id).state(), c.state) << h.status(id).reason();
    EXPECT_EQ(h.status(id).reason(), c.reason);
  }
}

// Nor where fewer are left than it has ranks.
TEST(Elastic, AndSoWhereFewerAreLeftThanItHasRanks) {
  struct Case {
    std::set<int> refused_ranks;
    JobState state;
    std::string reason;
  };
  const std::string waits =
      "waits for more workers: parallelism.data: no plan has 2 ranks";
  const Case cases[] = {
      {{2, 3, 4}, FAILED, "parallelism.data: no plan has 4 ranks"},
      {{2, 3}, QUEUED, waits},
      {{2, 4}, QUEUED, waits}};
  for (const Case& c : cases) {
    RecoveryHarness h;
    const std::vector<WorkerId> w = h.JoinMany(4);
    JobSpec spec = RecoveringSpec(4);
    spec.mutable_elastic()->set_min_workers(2);
    const JobId id = h.Submit(spec);
    h.AllReady(id, w, 1);
    h.AllStep(id, w, 1);
    h.compiler.refused_ranks = c.refused_ranks;
    for (const int rank : {2, 3}) h.Leaves(id, rank, w[rank]);
    h.Commits(id, w[0], 1);
    for (const int rank : {0, 1, 2, 3}) h.EndsKeeping(id, rank, w[rank], {1});
    EXPECT_EQ(h.status(id).state(), c.state) << h.status(id).reason();
    EXPECT_EQ(h.status(id).reason(), c.reason);
  }
}

// What has not run begins with fewer when no other has come for a while.
TEST(Elastic, BeginsWithoutAWorkerThatIsTooSmall) {
  RecoveryHarness h;
  h.Join("w0");
  JobSpec spec = RecoveringSpec(3);
  spec.mutable_model()->set_hidden_size(500);
  spec.mutable_elastic()->set_min_workers(2);
  const JobId id = h.Submit(spec);
  h.Join("w1");
  h.JoinWith("w2-small", 10);
  EXPECT_EQ(h.status(id).state(), QUEUED) << h.status(id).reason();
  h.Tick(absl::Seconds(3));
  EXPECT_EQ(h.status(id).state(), STARTING) << h.status(id).reason();
  EXPECT_EQ(h.status(id).workers_size(), 2);
}

// In the start that followed the first loss another one is lost.
TEST(Elastic, StandsStillSinceTheFirstLoss) {
  Elastic h;
  h.LoseTheLast({2});
  h.Tick(absl::Seconds(1));
  const WorkerId fourth = h.Join("w3");
  ASSERT_EQ(h.Begun(fourth).ref().attempt(), 2);
  h.Tick(absl::Seconds(1));
  h.Disconnect(fourth, "connection closed");
  h.EndsKeeping(h.id, 0, h.w[0], {2});
  h.EndsKeeping(h.id, 1, h.w[1], {2});
  h.Calm();
  h.Saved(h.w[1]);
  h.Saved(h.w[0]);
  h.Saved(h.w[0]);
  ASSERT_EQ(h.status(h.id).workers_size(), 2) << h.status(h.id).reason();
  h.AllReady(h.id, {h.w[0], h.w[1]}, 3);
  EXPECT_TRUE(h.Says("goes on with 2 workers after 5.0 s"));
  EXPECT_EQ(h.status(h.id).stood_seconds(), 5);
}

TEST(Elastic, AndSoWhereTheFirstStartIsOneOfAnotherPlan) {
  Elastic h;
  h.Commits(h.id, h.w[0], 2);
  h.LoseTheLast({2});
  h.Calm();
  ASSERT_EQ(h.status(h.id).state(), STARTING) << h.status(h.id).reason();
  h.Disconnect(h.w[1], "connection closed");
  h.EndsKeeping(h.id, 0, h.w[0], {});
  const WorkerId late = h.Join("w3");
  ASSERT_EQ(h.Begun(late).ref().attempt(), 3);
  h.Tick(absl::Seconds(1));
  h.AllReady(h.id, {h.w[0], late}, 3);
  EXPECT_TRUE(h.Says("recovered in 4.0 s"));
  EXPECT_EQ(h.status(h.id).stood_seconds(), 4);
  h.AllStep(h.id, {h.w[0], late}, 3);
  h.Disconnect(late, "connection closed");
  h.EndsKeeping(h.id, 0, h.w[0], {3});
  h.Tick(absl::Seconds(1));
  const WorkerId last = h.Join("w4");
  h.AllReady(h.id, {h.w[0], last}, 4);
  EXPECT_EQ(h.status(h.id).stood_seconds(), 5) << "that was over";
}

TEST(Elastic, SaysWhichStepsRunAgain) {
  Elastic h;
  h.Commits(h.id, h.w[0], 1);
  h.LoseTheLast({});
  h.Calm();
  h.AllReady(h.id, {h.w[0], h.w[1]}, 2);
  EXPECT_TRUE(h.Says("with step 2, 1 run again"));
}

}  // namespace
}  // namespace troupe
