// Jobs with `elastic` that run on fewer workers than they have ranks, when
// others come.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/elastic_harness.h"

namespace troupe {
namespace {

// Runs on w0 and w1 from step 3 on.
struct Narrowed : Elastic {
  explicit Narrowed(int restarts = 100)
      : Elastic(/*min_workers=*/1, /*zero=*/0, restarts) {
    Commits(id, w[0], 2);
    LoseTheLast({2});
    Calm();
    AllReady(id, {w[0], w[1]}, 3);
    ClearActions();
  }
  bool AskedToSave(WorkerId worker) const {
    for (const SchedulerMessage& message : Sent(worker)) {
      if (message.stop().checkpoint()) return true;
    }
    return false;
  }
};

TEST(Elastic, IsSavedAndGoesOnWithMore) {
  Narrowed h;
  const WorkerId back = h.Join("w2");
  EXPECT_FALSE(h.AskedToSave(h.w[0])) << "others may come, too";
  h.Calm();
  EXPECT_TRUE(h.AskedToSave(h.w[0]));
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  h.AllStep(h.id, {h.w[0], h.w[1]}, 3);
  h.Commits(h.id, h.w[0], 3);
  h.EndsKeeping(h.id, 0, h.w[0], {2});
  h.EndsKeeping(h.id, 1, h.w[1], {2});
  EXPECT_EQ(h.status(h.id).state(), STARTING) << h.status(h.id).reason();
  EXPECT_EQ(h.status(h.id).workers_size(), 3);
  EXPECT_EQ(h.Begun(back).resume(), "/c/step-3");
  EXPECT_EQ(h.status(h.id).restarts(), 1) << "that was the loss";
  h.AllReady(h.id, {h.w[0], h.w[1], back}, 4);
  EXPECT_TRUE(h.Says("goes on with 3 workers"));
}

// They count losses.
TEST(Elastic, GoesOnWithMoreThoughItsRestartsAreUsedUp) {
  Narrowed h(/*restarts=*/1);
  const WorkerId back = h.Join("w2");
  h.Calm();
  ASSERT_TRUE(h.AskedToSave(h.w[0]));
  h.AllStep(h.id, {h.w[0], h.w[1]}, 3);
  h.Commits(h.id, h.w[0], 3);
  h.EndsKeeping(h.id, 0, h.w[0], {2});
  h.EndsKeeping(h.id, 1, h.w[1], {2});
  EXPECT_EQ(h.Begun(back).resume(), "/c/step-3");
  h.AllReady(h.id, {h.w[0], h.w[1], back}, 4);
  h.Leaves(h.id, 2, back);
  EXPECT_EQ(h.status(h.id).state(), RECOVERING) << h.status(h.id).reason();
}

TEST(Elastic, GoesOnAsItIsThoughItsRestartsAreUsedUpWhereItCannotBeSaved) {
  Narrowed h(/*restarts=*/1);
  h.Join("w2");
  h.Calm();
  h.EndsKeeping(h.id, 0, h.w[0], {2}, "step 3: checkpoint of step 3: full");
  h.EndsKeeping(h.id, 1, h.w[1], {2});
  h.AllReady(h.id, {h.w[0], h.w[1]}, 3);
  EXPECT_EQ(h.status(h.id).restarts(), 1);
}

TEST(Elastic, ALossWhileItIsSavedIsOneTooManyWhereRestartsAreUsedUp) {
  Narrowed h(/*restarts=*/1);
  h.Join("w2");
  h.Calm();
  h.Disconnect(h.w[1], "connection closed");
  h.EndsKeeping(h.id, 0, h.w[0], {2});
  EXPECT_EQ(h.status(h.id).state(), FAILED);
  EXPECT_EQ(h.worker(h.w[0]).state(), WorkerStatus::IDLE);
}

// Four ranks, and one worker at first: with two it is asked for two.
TEST(Elastic, AWideningThatTakesTooLongToPlanIsAskedForAgainWhenAllAreThere) {
  RecoveryHarness h;
  std::vector<WorkerId> w = h.JoinMany(1);
  JobSpec spec = RecoveringSpec(4);
  spec.mutable_elastic()->set_min_workers(1);
  const JobId id = h.Submit(spec);
  h.Tick(absl::Seconds(3));
  h.AllReady(id, w, 1);
  h.by_hand = true;
  const auto joins = [&] { w.push_back(h.Join(absl::StrCat("w", w.size()))); };
  const auto asked = [&] {
    h.Pass(absl::Seconds(3), w);
    return h.All<CompileJob>();
  };
  joins();
  const CompileJob first = asked().back();
  joins();
  h.EndsTooLate(first);
  h.ClearActions();
  EXPECT_TRUE(asked().empty()) << "three would do no better";
  joins();
  EXPECT_FALSE(asked().empty());
}

TEST(Elastic, ALossWhileItIsSavedIsALoss) {
  Narrowed h;
  const WorkerId back = h.Join("w2");
  h.Calm();
  h.Disconnect(h.w[1], "connection closed");
  EXPECT_TRUE(h.Sent(h.w[0]).back().stop().peers_gone());
  h.EndsKeeping(h.id, 0, h.w[0], {2});
  EXPECT_EQ(h.Begun(back).recovery().state().step(), 2)
      << "it takes the place in the plan for two";
}

TEST(Elastic, EndsAsUsualWhereItsLastStepWasThatOfTheSave) {
  Narrowed h;
  h.Join("w2");
  h.Calm();
  for (int64_t step = 3; step <= 10; ++step) {
    h.AllStep(h.id, {h.w[0], h.w[1]}, step);
  }
  h.Ended(h.id, 0, h.w[0], {});
  h.Ended(h.id, 1, h.w[1], {});
  EXPECT_EQ(h.status(h.id).state(), SUCCEEDED) << h.status(h.id).reason();
}

// Its plan with more ranks comes when the job recovers, or never: planning does
// not begin for one that recovers.
TEST(Elastic, IsWidenedAfterARecoveryThatCameFirst) {
  for (const bool comes : {true, false}) {
    Narrowed h;
    h.by_hand = true;
    h.Join("w2");
    h.Calm();
    ASSERT_FALSE(h.All<CompileJob>().empty());
    const CompileJob asked = h.All<CompileJob>().back();
    h.EndsKeeping(h.id, 0, h.w[0], {2}, "step 3: a bad value");
    if (comes) h.Compiled(asked);
    h.by_hand = false;
    h.EndsKeeping(h.id, 1, h.w[1], {2});
    h.AllReady(h.id, {h.w[0], h.w[1]}, 3);
    h.Calm();
    EXPECT_TRUE(h.AskedToSave(h.w[0])) << comes;
  }
}

TEST(Elastic, MoreWorkersThanItHasRanksChangeNothing) {
  Elastic h;
  h.Join("w3");
  h.Calm();
  EXPECT_EQ(h.status(h.id).state(), RUNNING);
}

TEST(Elastic, AWideningThatCannotBeSavedIsNotAskedForAgainAtOnce) {
  Narrowed h;
  h.Join("w2");
  h.Calm();
  h.EndsKeeping(h.id, 0, h.w[0], {2}, "step 3: checkpoint of step 3: full");
  h.EndsKeeping(h.id, 1, h.w[1], {2});
  EXPECT_EQ(h.status(h.id).state(), RECOVERING);
  h.AllReady(h.id, {h.w[0], h.w[1]}, 3);
  EXPECT_TRUE(h.Says("could not be saved to move; that is tried again in 1m"));
  h.ClearActions();
  h.Pass(absl::Seconds(50), h.alive());
  EXPECT_FALSE(h.AskedToSave(h.w[0]));
  h.Pass(absl::Seconds(15), h.alive());
  EXPECT_TRUE(h.AskedToSave(h.w[0]));
}

TEST(Elastic, ALossThatFollowsIsALoss) {
  Narrowed h;
  const WorkerId back = h.Join("w2");
  h.Calm();
  h.EndsKeeping(h.id, 0, h.w[0], {2}, "step 3: checkpoint of step 3: full");
  h.Disconnect(h.w[1], "connection closed");
  EXPECT_EQ(h.Begun(back).recovery().state().step(), 2);
  EXPECT_EQ(h.status(h.id).restarts(), 2);
  EXPECT_FALSE(h.Says("could not be saved to move"));
}

TEST(Elastic, ACheckpointEndsThePause) {
  Narrowed h;
  h.Join("w2");
  h.Calm();
  h.EndsKeeping(h.id, 0, h.w[0], {2}, "step 3: checkpoint of step 3: full");
  h.EndsKeeping(h.id, 1, h.w[1], {2});
  h.AllReady(h.id, {h.w[0], h.w[1]}, 3);
  h.ClearActions();
  h.Calm();
  EXPECT_FALSE(h.AskedToSave(h.w[0]));
  h.Commits(h.id, h.w[0], 3);
  h.Tick(absl::Seconds(1));
  EXPECT_TRUE(h.AskedToSave(h.w[0]));
}

}  // namespace
}  // namespace troupe
