// Jobs with `elastic`: what becomes of them with fewer workers than ranks, and
// when others come.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/scheduler/cluster/elastic_harness.h"

namespace troupe {
namespace {

TEST(Elastic, CopiesBecomeACheckpointForFewer) {
  Elastic h;
  h.LoseTheLast({2});
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  EXPECT_TRUE(h.Asked(h.w[0]).empty()) << "another worker may come";
  h.Calm();
  ASSERT_EQ(h.Asked(h.w[0]).size(), 1);
  const SaveCopies asked = h.Asked(h.w[0])[0];
  EXPECT_EQ(asked.state().step(), 2);
  EXPECT_EQ(asked.ref().attempt(), 1);
  // All hold the same: w0 writes what w2 would have, too.
  ASSERT_EQ(asked.copies_size(), 2);
  EXPECT_EQ(asked.copies(0).plan().rank(), 0);
  EXPECT_EQ(asked.copies(1).plan().rank(), 2);
  ASSERT_EQ(h.Asked(h.w[1]).size(), 1);
  EXPECT_EQ(h.Asked(h.w[1])[0].copies_size(), 1);
  h.Saved(h.w[1]);
  h.Saved(h.w[0]);
  ASSERT_EQ(h.Asked(h.w[0]).size(), 2);
  EXPECT_TRUE(h.Asked(h.w[0])[1].has_commits());
  EXPECT_EQ(h.Asked(h.w[0])[1].shards_size(), 3);
  WorkerMessage again;  // what it said of its shards
  *again.mutable_copies_saved()->mutable_ref() = h.Asked(h.w[0])[0].ref();
  again.mutable_copies_saved()->set_token(h.Asked(h.w[0])[0].token());
  h.Send(h.w[0], again);
  EXPECT_EQ(h.status(h.id).checkpoints_size(), 0);
  h.Saved(h.w[0]);
  EXPECT_EQ(h.status(h.id).state(), STARTING) << h.status(h.id).reason();
  EXPECT_EQ(h.status(h.id).workers_size(), 2);
  EXPECT_EQ(h.Begun(h.w[1]).resume(), "/c/copies");
  EXPECT_TRUE(h.Begun(h.w[1]).ran_before());
  EXPECT_EQ(h.Begun(h.w[1]).plan().job().parallelism().data(), 2);
  EXPECT_EQ(h.status(h.id).restarts(), 1);
  h.AllReady(h.id, {h.w[0], h.w[1]}, 3);
  EXPECT_TRUE(h.Says("goes on with 2 workers after 3"));
  EXPECT_TRUE(h.Says("with step 3"));
}

TEST(Elastic, AWorkerThatComesInTimeTakesThePlace) {
  Elastic h;
  h.LoseTheLast({2});
  const WorkerId late = h.Join("w3");
  EXPECT_EQ(h.Begun(late).recovery().state().step(), 2);
  EXPECT_EQ(h.Begun(late).ref().rank(), 2);
}

TEST(Elastic, AndSoDoesOneThatComesWhileCopiesAreSaved) {
  Elastic h;
  h.LoseTheLast({2});
  h.Calm();
  const WorkerId late = h.Join("w3");
  EXPECT_EQ(h.Begun(late).recovery().state().step(), 2);
  h.Saved(h.w[0]);  // an answer that nobody waits for
  h.AllReady(h.id, {h.w[0], h.w[1], late}, 3);
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

// They are in memory still.
TEST(Elastic, WaitsForAWorkerWhereCopiesCannotBeSaved) {
  for (const bool late : {false, true}) {
    Elastic h;
    h.LoseTheLast({2});
    h.Calm();
    if (late) {
      h.Pass(absl::Minutes(30) + absl::Seconds(2), h.alive());
    } else {
      h.Saved(h.w[1], "/c: no space");
    }
    EXPECT_TRUE(h.Says(
        late ? "could not be saved: not within 30m; tried again in 1m"
             : "could not be saved: w1 (rank 1): /c: no space; tried again"));
    EXPECT_EQ(h.status(h.id).state(), RECOVERING);
    h.ClearActions();
    h.Pass(absl::Seconds(40), h.alive());
    EXPECT_TRUE(h.Asked(h.w[0]).empty());
    h.Pass(absl::Seconds(30), h.alive());
    EXPECT_FALSE(h.Asked(h.w[0]).empty());
    const WorkerId late_one = h.Join("w3");
    EXPECT_EQ(h.Begun(late_one).recovery().state().step(), 2);
  }
}

// Who stays keeps the same.
TEST(Elastic, TriesAgainWhereWhoLeavesTakesNoCopiesAlong) {
  for (const bool sliced : {false, true}) {
    Elastic h(/*min_workers=*/1, /*zero=*/sliced ? 3 : 0);
    h.Commits(h.id, h.w[0], 1);
    h.Disconnect(h.w[2], "connection closed");
    for (const int rank : {0, 1}) h.EndsKeepingPeers(h.id, rank, h.w[rank], 2);
    h.Leaves(h.id, 1, h.w[1]);
    h.Saved(h.w[0], "/c: no space");
    EXPECT_EQ(h.Forgotten(h.w[1]), std::vector<int>{1});
    EXPECT_TRUE(h.Says("could not be saved: w0 (rank 0): /c: no space"));
    EXPECT_EQ(h.Says("/c: no space; tried again in 1m"), !sliced);
    h.ClearActions();
    h.Pass(absl::Minutes(1) + absl::Seconds(2), h.alive());
    EXPECT_EQ(h.Asked(h.w[0]).empty(), sliced) << "of w1's nothing is left";
  }
}

TEST(Elastic, AnotherLossWhileCopiesAreSavedAsksAnew) {
  Elastic h;
  h.LoseTheLast({2});
  h.Calm();
  h.Disconnect(h.w[0], "connection closed");
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  h.Calm();
  ASSERT_EQ(h.Asked(h.w[1]).size(), 2);
  EXPECT_EQ(h.Asked(h.w[1])[1].copies_size(), 3) << "of all ranks";
  h.Saved(h.w[1]);
  h.Saved(h.w[1]);
  EXPECT_EQ(h.status(h.id).workers_size(), 1);
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

// What it had to do is done.
TEST(Elastic, AnotherLossDuringTheCommitChangesNothing) {
  Elastic h;
  h.CopiesAreWritten();
  h.Disconnect(h.w[1], "connection closed");
  h.Calm();
  EXPECT_EQ(h.Asked(h.w[0]).size(), 2) << "to write, and to commit";
  h.Saved(h.w[0]);
  EXPECT_EQ(h.status(h.id).checkpoints_size(), 1);
  EXPECT_EQ(h.Begun(h.w[0]).resume(), "/c/copies");
  EXPECT_EQ(h.status(h.id).workers_size(), 1);
}

// Others could only go on from less.
TEST(Elastic, WorkersThatComeDuringTheCommitWaitForCopiesThatAreNotLeft) {
  for (const bool fails : {false, true}) {
    Elastic h(/*min_workers=*/1, /*zero=*/3);
    h.Disconnect(h.w[2], "connection closed");
    for (const int rank : {0, 1}) h.EndsKeepingPeers(h.id, rank, h.w[rank], 2);
    h.Calm();
    h.Saved(h.w[1]);
    h.Saved(h.w[0]);
    ASSERT_TRUE(h.Asked(h.w[0]).back().has_commits());
    h.Disconnect(h.w[1], "connection closed");
    const WorkerId fourth = h.Join("w3");
    const WorkerId fifth = h.Join("w4");
    EXPECT_EQ(h.Begun(fourth).ref().job(), 0);
    h.Saved(h.w[0], fails ? "/c: no space" : "");
    EXPECT_EQ(h.Begun(fourth).resume(), fails ? "" : "/c/copies");
    EXPECT_EQ(h.Begun(fifth).ref().attempt(), 2);
  }
}

// Whoever is scheduler next may know of no checkpoint but the one before.
TEST(Elastic, CopiesStayUntilItIsStoredThatTheyAreACheckpoint) {
  Elastic h;
  h.CopiesAreWritten();
  h.stored_by_hand = true;
  h.Saved(h.w[0]);
  EXPECT_EQ(h.status(h.id).checkpoints_size(), 1);
  const auto answer = [&h](const absl::Status& stored) {
    const std::vector<AwaitStored> asked = h.All<AwaitStored>();
    h.ClearActions();
    for (const AwaitStored& each : asked) {
      if (each.job == h.id) return h.Stored(each, stored);
    }
    ADD_FAILURE() << "the store is not asked";
  };
  for (int i = 0; i < 2; ++i) {
    answer(absl::ResourceExhaustedError("disk full"));
    EXPECT_EQ(h.status(h.id).state(), RECOVERING);
    EXPECT_TRUE(absl::StrContains(h.status(h.id).reason(), "disk full"))
        << h.status(h.id).reason();
    EXPECT_TRUE(h.Forgotten(h.w[0]).empty());
    EXPECT_TRUE(h.Forgotten(h.w[1]).empty());
    h.Pass(absl::Seconds(2), h.alive());
  }
  answer(absl::OkStatus());
  EXPECT_EQ(h.Forgotten(h.w[0]), std::vector<int>{1});
  EXPECT_EQ(h.Forgotten(h.w[1]), std::vector<int>{1});
  EXPECT_EQ(h.status(h.id).state(), QUEUED);
}

TEST(Elastic, ACheckpointThatIsLateIsTheJobsAllTheSame) {
  Elastic h;
  h.CopiesAreWritten();
  h.Pass(absl::Minutes(30) + absl::Seconds(2), h.alive());
  EXPECT_TRUE(h.Says("could not be saved: not within 30m"));
  h.Saved(h.w[0]);
  ASSERT_EQ(h.status(h.id).checkpoints_size(), 1);
  EXPECT_EQ(h.status(h.id).checkpoints(0).step(), 2);
  const size_t events = h.job(h.id).events.size();
  h.Saved(h.w[0]);
  EXPECT_EQ(h.job(h.id).events.size(), events) << "that is known";
  h.Pass(absl::Minutes(1), h.alive());
  EXPECT_EQ(h.Begun(h.w[0]).resume(), "/c/copies");
}

// As of one that is in time.
TEST(Elastic, CopiesOfALateCheckpointStayUntilItIsStored) {
  Elastic h;
  h.CopiesAreWritten();
  h.Pass(absl::Minutes(30) + absl::Seconds(2), h.alive());
  h.stored_by_hand = true;
  h.Saved(h.w[0]);
  ASSERT_EQ(h.status(h.id).checkpoints_size(), 1);
  h.Pass(absl::Minutes(2), h.alive());
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  EXPECT_TRUE(h.Forgotten(h.w[0]).empty());
  EXPECT_TRUE(h.Forgotten(h.w[1]).empty());
  h.Disconnect(h.w[1], "connection closed");
  h.Stored({h.id, h.job(h.id).attempt});
  EXPECT_EQ(h.Forgotten(h.w[0]), std::vector<int>{1});
  EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
}

TEST(Elastic, WaitsForAsManyAsItNeeds) {
  Elastic h(/*min_workers=*/3);
  h.LoseTheLast({2});
  h.Calm();
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  EXPECT_TRUE(h.Asked(h.w[0]).empty());
}

TEST(Elastic, IsCancelledWhileCopiesAreSaved) {
  Elastic h;
  h.LoseTheLast({2});
  h.Calm();
  EXPECT_TRUE(h.cluster.Cancel(h.id, h.now, h.actions).ok());
  EXPECT_EQ(h.status(h.id).state(), CANCELLED);
  h.Saved(h.w[0]);
  EXPECT_EQ(h.worker(h.w[0]).state(), WorkerStatus::IDLE);
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
  h.cluster.Stored(JobId(), 0, full, h.now, h.actions);
  EXPECT_NE(h.status(id).reason(), reason);
  h.cluster.Stored(JobId(), 0, absl::OkStatus(), h.now, h.actions);
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

// Then the job can go on with fewer at once, from its checkpoint.
TEST(Elastic, APauseHoldsOnlyAsLongAsThereIsSomethingToSave) {
  Elastic h;
  h.Commits(h.id, h.w[0], 1);
  h.LoseTheLast({2});
  h.Calm();
  h.Saved(h.w[1], "/c: no space");
  EXPECT_TRUE(absl::StrContains(
      h.status(h.id).reason(),
      "or goes on with 1 workers or more when its copies are saved, which "
      "failed and is tried again at 13:47:43 UTC; w2 (rank 2) was lost"))
      << h.status(h.id).reason();
  h.Disconnect(h.w[0], "connection closed");
  h.Disconnect(h.w[1], "connection closed");
  const WorkerId late = h.Join("w3");
  h.Calm();
  EXPECT_EQ(h.status(h.id).state(), STARTING) << h.status(h.id).reason();
  EXPECT_EQ(h.Begun(late).resume(), "/c/step-1");
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
