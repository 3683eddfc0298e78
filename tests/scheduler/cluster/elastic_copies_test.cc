// Jobs with `elastic`: copies that become a checkpoint, from which fewer
// workers go on; or that do not.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/effects.h"
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
  EXPECT_EQ(h.Asked(h.w[0])[1].shard_records_size(), 3);
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

// Of step 3 the lost rank said nothing. The next scheduler may go on from the
// checkpoint, and never hears of step 3 again.
TEST(Elastic, StepsAreStoredBeforeTheirCopiesAreACheckpoint) {
  Elastic h;
  h.stored_by_hand = true;
  h.Step(h.id, 0, h.w[0], 3);
  h.Step(h.id, 1, h.w[1], 3);
  h.LoseTheLast({3});
  h.Calm();
  h.Saved(h.w[1]);
  h.Saved(h.w[0]);
  const size_t before = h.All<PersistStep>().size();
  h.Saved(h.w[0]);
  ASSERT_EQ(h.status(h.id).checkpoints_size(), 1);
  EXPECT_EQ(h.status(h.id).state(), RECOVERING) << "that is not stored yet";
  const std::vector<PersistStep> steps = h.All<PersistStep>();
  ASSERT_EQ(steps.size(), before + 1);
  EXPECT_EQ(steps.back().step.step(), 3);
}

TEST(Elastic, AWorkerThatComesWhileCopiesAreSavedTakesThePlace) {
  Elastic h;
  h.LoseTheLast({2});
  h.Calm();
  const WorkerId late = h.Join("w3");
  EXPECT_EQ(h.Begun(late).recovery().state().step(), 2);
  h.Saved(h.w[0]);  // an answer that nobody waits for
  h.AllReady(h.id, {h.w[0], h.w[1], late}, 3);
}

TEST(Elastic, CopiesStayUntilItIsStoredThatThereIsANewerCheckpoint) {
  Elastic h;
  h.stored_by_hand = true;
  h.Commits(h.id, h.w[0], 2);
  h.LoseTheLast({1});
  h.Calm();
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  EXPECT_TRUE(h.Forgotten(h.w[0]).empty());
  h.Stored(h.All<AwaitStored>().back());
  EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
  EXPECT_EQ(h.Forgotten(h.w[0]), std::vector<int>{1});
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

// Nothing would come of waiting.
TEST(Elastic, GoesOnFromItsCheckpointWhereNoDiskIsInTheWay) {
  Elastic h;
  h.Commits(h.id, h.w[0], 1);
  h.LoseTheLast({2});
  h.Calm();
  h.Saved(h.w[1], "a device is broken", /*fails_again=*/true);
  EXPECT_TRUE(h.Says("w1 (rank 1): a device is broken"));
  EXPECT_FALSE(h.Says("tried again in"));
  h.Calm();
  EXPECT_EQ(h.Begun(h.w[0]).resume(), "/c/step-1") << h.status(h.id).reason();
}

// A worker that stays keeps the same.
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

// The next scheduler may know of no checkpoint but the one before.
TEST(Elastic, CopiesStayUntilItIsStoredThatTheyAreACheckpoint) {
  Elastic h;
  h.CopiesAreWritten();
  h.stored_by_hand = true;
  h.Saved(h.w[0]);
  EXPECT_EQ(h.status(h.id).checkpoints_size(), 1);
  for (int i = 0; i < 2; ++i) {
    h.StoreAnswers(absl::ResourceExhaustedError("disk full"));
    EXPECT_EQ(h.status(h.id).state(), RECOVERING);
    EXPECT_TRUE(absl::StrContains(h.status(h.id).reason(), "disk full"))
        << h.status(h.id).reason();
    EXPECT_TRUE(h.Forgotten(h.w[0]).empty());
    EXPECT_TRUE(h.Forgotten(h.w[1]).empty());
    h.Pass(absl::Seconds(2), h.alive());
  }
  h.StoreAnswers(absl::OkStatus());
  EXPECT_EQ(h.Forgotten(h.w[0]), std::vector<int>{1});
  EXPECT_EQ(h.Forgotten(h.w[1]), std::vector<int>{1});
  EXPECT_EQ(h.status(h.id).state(), QUEUED);
}

// One that is late, about the beginning of the attempt.
TEST(Elastic, AnotherAnswerOfTheStoreIsNoneAboutTheCopies) {
  Elastic h;
  h.stored_by_hand = true;
  const WorkerId late = h.Join("w3");
  h.LoseTheLast({2});
  ASSERT_EQ(h.job(h.id).attempt, 2);
  const AwaitStored begins = h.All<AwaitStored>().back();
  h.Disconnect(late, "connection closed");
  h.Calm();
  h.Saved(h.w[1]);
  h.Saved(h.w[0]);
  h.Saved(h.w[0]);
  ASSERT_TRUE(AwaitsCopiesStored(h.job(h.id)));
  const AwaitStored copies = h.All<AwaitStored>().back();
  h.Stored(begins);
  EXPECT_TRUE(h.Forgotten(h.w[0]).empty());
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  h.Stored(copies);
  EXPECT_EQ(h.Forgotten(h.w[0]), std::vector<int>{1});
  EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
}

// What it keeps is on the workers' disk.
TEST(Elastic, WhoLeavesDoesNotWaitForAStoreThatIsFull) {
  for (const bool copies : {true, false}) {
    for (const bool leaves_first : {true, false}) {
      Elastic h;
      if (copies) {
        h.CopiesAreWritten();
        h.stored_by_hand = true;
        h.Saved(h.w[0]);
      } else {
        h.Commits(h.id, h.w[0], 2);
        h.stored_by_hand = true;
        h.LoseTheLast({2});
        h.Calm();
      }
      if (leaves_first) {
        h.Leaves(h.id, 1, h.w[1]);
        EXPECT_TRUE(h.Forgotten(h.w[1]).empty()) << "it may be stored soon";
      }
      h.StoreAnswers(absl::ResourceExhaustedError("disk full"));
      if (!leaves_first) h.Leaves(h.id, 1, h.w[1]);
      EXPECT_EQ(h.Forgotten(h.w[1]), std::vector<int>{1}) << copies;
      EXPECT_TRUE(h.Forgotten(h.w[0]).empty()) << "it may stay";
      EXPECT_TRUE(absl::StrContains(h.status(h.id).reason(), "disk full"))
          << h.status(h.id).reason();
      h.SaysGoodbye(h.w[1]);
      h.Pass(absl::Seconds(2), h.alive());
      h.StoreAnswers(absl::OkStatus());
      EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
      EXPECT_EQ(h.Forgotten(h.w[0]), std::vector<int>{1});
    }
  }
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
  h.Stored(h.All<AwaitStored>().back());
  EXPECT_EQ(h.Forgotten(h.w[0]), std::vector<int>{1});
  EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
}

// It is newer than that of which the store is asked.
TEST(Elastic, ACheckpointIsTheJobsWhileAnotherIsStored) {
  Elastic h;
  h.Commits(h.id, h.w[0], 1);
  h.Disconnect(h.w[2], "connection closed");
  h.EndsKeeping(h.id, 0, h.w[0], {1});
  h.EndsKeeping(h.id, 1, h.w[1], {2});
  h.Calm();
  h.Saved(h.w[1]);
  ASSERT_TRUE(h.Asked(h.w[0]).back().has_commits());
  h.Pass(absl::Minutes(30) + absl::Seconds(2), h.alive());
  EXPECT_TRUE(h.Says("could not be saved: not within 30m"));
  h.stored_by_hand = true;
  h.Disconnect(h.w[1], "connection closed");
  h.Calm();
  ASSERT_TRUE(AwaitsCopiesStored(h.job(h.id)));
  h.Saved(h.w[0]);
  ASSERT_EQ(h.status(h.id).checkpoints_size(), 2);
  EXPECT_EQ(h.status(h.id).checkpoints(1).step(), 2);
  EXPECT_TRUE(AwaitsCopiesStored(h.job(h.id)));
  h.StoreAnswers(absl::OkStatus());
  EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
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

// As of one that takes nothing, and says so.
TEST(Elastic, AStoreThatDoesNotAnswerIsNamed) {
  Elastic h;
  h.Commits(h.id, h.w[0], 2);
  h.stored_by_hand = true;
  h.LoseTheLast({2});
  h.Calm();
  EXPECT_EQ(h.status(h.id).reason(),
            "waits until it is stored that the checkpoint of step 2 is there; "
            "w2 (rank 2) was lost in step 3: connection closed");
  h.Leaves(h.id, 1, h.w[1]);
  h.Pass(Limits().start_max - absl::Seconds(2), h.alive());
  EXPECT_TRUE(h.Forgotten(h.w[1]).empty());
  h.Pass(absl::Seconds(4), h.alive());
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  EXPECT_EQ(h.status(h.id).reason(),
            "waits until the scheduler can write its store again: it has not "
            "answered for 5m");
  EXPECT_EQ(h.Forgotten(h.w[1]), std::vector<int>{1});
  h.SaysGoodbye(h.w[1]);
  h.Pass(2 * Limits().start_max, h.alive());
  h.StoreAnswers(absl::OkStatus());
  EXPECT_EQ(h.status(h.id).state(), QUEUED) << h.status(h.id).reason();
}

// What it says of its checkpoint does not decide what the scheduler believes.
TEST(Elastic, ACheckpointOfAnotherStepThanAskedIsNotTheJobs) {
  for (const int64_t step : {1, 99}) {
    for (const bool late : {false, true}) {
      Elastic h;
      h.CopiesAreWritten();
      if (late) h.Pass(absl::Minutes(30) + absl::Seconds(2), h.alive());
      const SaveCopies asked = h.Asked(h.w[0]).back();
      WorkerMessage message;
      CopiesSaved& saved = *message.mutable_copies_saved();
      *saved.mutable_ref() = asked.ref();
      saved.set_token(asked.token());
      saved.mutable_checkpoint()->set_step(step);
      saved.mutable_checkpoint()->set_path("/c/other");
      h.Send(h.w[0], message);
      EXPECT_EQ(h.status(h.id).checkpoints_size(), 0);
      EXPECT_EQ(h.status(h.id).state(), RECOVERING);
      EXPECT_EQ(h.Says(absl::StrCat("w0 (rank 0) committed step ", step,
                                    " where it was asked for step 2")),
                !late);
      h.cluster.Drain("asked to end", h.now, h.actions);
      EXPECT_FALSE(h.status(h.id).ShortDebugString().empty());
    }
  }
}

}  // namespace
}  // namespace troupe
