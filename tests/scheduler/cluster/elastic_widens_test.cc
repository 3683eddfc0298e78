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

// Its user left the plan to choose: the compiler takes up to three ranks of the
// workers that there are.
struct Chosen : RecoveryHarness {
  explicit Chosen(int workers, const std::string& objective = "time") {
    w = JoinMany(workers);
    JobSpec spec = RecoveringSpec(1);
    spec.mutable_elastic()->set_min_workers(1);
    spec.mutable_parallelism()->clear_data();
    spec.mutable_parallelism()->set_mode("auto");
    spec.set_objective(objective);
    id = Submit(spec);
    AllReady(id, w, 1);
    AllStep(id, w, 1);
    ClearActions();
  }
  void Calm() { Pass(absl::Seconds(3), w); }
  bool AskedToSave() const {
    for (const SchedulerMessage& message : Sent(w[0])) {
      if (message.stop().checkpoint()) return true;
    }
    return false;
  }
  // All ranks save after a step, and let go.
  void MovesAfter(int64_t step, const std::vector<WorkerId>& ranks) {
    AllStep(id, ranks, step);
    Commits(id, ranks[0], step);
    for (size_t r = 0; r < ranks.size(); ++r) {
      EndsKeeping(id, static_cast<int>(r), ranks[r], {});
    }
  }
  std::vector<WorkerId> w;
  JobId id;
};

TEST(Elastic, APlanIsChosenAgainWhereWorkersCome) {
  Chosen h(/*workers=*/1);
  ASSERT_EQ(h.job(h.id).ranks_needed, 1);
  h.w.push_back(h.Join("w1"));
  h.Calm();
  ASSERT_TRUE(h.AskedToSave());
  h.MovesAfter(2, {h.w[0]});
  EXPECT_EQ(h.status(h.id).state(), STARTING) << h.status(h.id).reason();
  EXPECT_EQ(h.status(h.id).workers_size(), 2);
  EXPECT_EQ(h.job(h.id).plan->job().parallelism().data(), 2);
  h.AllReady(h.id, h.w, 3);
  h.ClearActions();
  for (const char* const name : {"w2", "w3"}) h.w.push_back(h.Join(name));
  h.Calm();
  ASSERT_TRUE(h.AskedToSave());
  h.MovesAfter(3, {h.w[0], h.w[1]});
  EXPECT_EQ(h.status(h.id).workers_size(), 3) << "the fourth is not wanted";
  h.AllReady(h.id, {h.w[0], h.w[1], h.w[2]}, 4);
  h.ClearActions();
  h.w.push_back(h.Join("w4"));
  h.Calm();
  EXPECT_FALSE(h.AskedToSave()) << "no plan is quicker";
}

TEST(Elastic, APlanIsChosenAgainWhereWorkersAreLost) {
  Chosen h(/*workers=*/3);
  h.Commits(h.id, h.w[0], 1);
  h.Disconnect(h.w[2], "connection closed");
  for (const int rank : {0, 1}) h.EndsKeeping(h.id, rank, h.w[rank], {});
  h.w.pop_back();
  h.Calm();
  EXPECT_EQ(h.status(h.id).state(), STARTING) << h.status(h.id).reason();
  const std::vector<CompileJob> asked = h.All<CompileJob>();
  ASSERT_FALSE(asked.empty());
  const Choice& first = asked.back().compilation->choices.front();
  EXPECT_EQ(first.spec.parallelism().mode(), "auto");
  EXPECT_EQ(first.ids.size(), 2u);
  EXPECT_EQ(h.job(h.id).plan->job().parallelism().data(), 2);
  EXPECT_EQ(h.job(h.id).spec.parallelism().data(), 3) << "its first choice";
}

TEST(Elastic, AChoiceThatTakesTooLongIsNotMadeAgain) {
  Chosen h(/*workers=*/3);
  h.Commits(h.id, h.w[0], 1);
  h.by_hand = true;
  h.Disconnect(h.w[2], "connection closed");
  for (const int rank : {0, 1}) h.EndsKeeping(h.id, rank, h.w[rank], {});
  h.w.pop_back();
  h.Calm();
  const std::vector<CompileJob> asked = h.All<CompileJob>();
  ASSERT_FALSE(asked.empty());
  EXPECT_EQ(asked.back().compilation->choices[0].spec.parallelism().mode(),
            "auto");
  h.EndsTooLate(asked.back());
  const std::vector<CompileJob> again = h.All<CompileJob>();
  ASSERT_EQ(again.size(), asked.size() + 1) << h.status(h.id).reason();
  for (const Choice& choice : again.back().compilation->choices) {
    EXPECT_EQ(choice.spec.parallelism().mode(), "");
  }
  h.Compiled(again.back());
  EXPECT_EQ(h.status(h.id).state(), STARTING) << h.status(h.id).reason();
  EXPECT_EQ(h.status(h.id).workers_size(), 2);
}

// What is cheapest on one worker is not known to be dearer than on two.
TEST(Elastic, OtherObjectivesStayWithTheirChoiceWhereWorkersCome) {
  Chosen h(/*workers=*/1, "tokens_per_dollar");
  h.w.push_back(h.Join("w1"));
  h.Calm();
  EXPECT_FALSE(h.AskedToSave());
}

}  // namespace
}  // namespace troupe
