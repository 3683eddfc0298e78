#include "scheduler/cluster/run.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Run, KeepsTheBestExplanation) {
  phase::Stopped run;
  EXPECT_TRUE(run.Explain(Blame::kMissingPeer, "rank 1 did not come"));
  EXPECT_FALSE(run.Explain(Blame::kMissingPeer, "rank 0 did not come"));
  EXPECT_TRUE(run.Explain(Blame::kWorkerLost, "worker-1 was lost"));
  EXPECT_FALSE(run.Explain(Blame::kRank, "rank 0 failed"));
  EXPECT_EQ(run.cause, "worker-1 was lost");
}

TEST(Run, HasTheDataOfItsPhaseAlone) {
  struct Run run(1, Plan(), {});
  run.phase = phase::Training{};
  EXPECT_FALSE(run.stopping());
  EXPECT_EQ(run.blame(), Blame::kNone);
  EXPECT_EQ(AskedOf(run.phase), nullptr);
  EXPECT_EQ(WarningsOf(run.phase), nullptr);
  run.phase = phase::Stopping({.blame = Blame::kHang, .cause = "silence"});
  EXPECT_EQ(run.stopped()->cause, "silence");
  EXPECT_EQ(run.between(), nullptr);
  run.phase = phase::AwaitPlaces({*run.stopped(), absl::UnixEpoch()});
  run.in<phase::AwaitPlaces>()->for_disk = true;
  run.between()->unsavable_step = 7;
  run.phase = phase::SavingCopies(*run.between());
  EXPECT_EQ(run.blame(), Blame::kHang);
  EXPECT_EQ(run.between()->unsavable_step, 7);
  EXPECT_NE(AskedOf(run.phase), nullptr);
  run.phase = phase::AwaitPlaces(*run.between());
  EXPECT_FALSE(run.in<phase::AwaitPlaces>()->for_disk);
}

TEST(Run, TheLaggardIsTheOneLeastFar) {
  struct Run run(3, Plan(), {});
  for (int r = 0; r < 3; ++r) {
    run.ranks[r].step = 5;
    run.ranks[r].heard = absl::FromUnixSeconds(100 - r);
  }
  EXPECT_EQ(run.ranks.Laggard(), 2) << "of equals the one longest silent";
  run.ranks[1].step = 4;
  EXPECT_EQ(run.ranks.Laggard(), 1);
}

TEST(Run, LetsGoWhenNoRankIsLive) {
  struct Run run(2, Plan(), {});
  EXPECT_FALSE(run.ranks.all_let_go());
  EXPECT_FALSE(run.ranks.all_ready());
  run.ranks[0].state = run.ranks[1].state = RankSeat::kRunning;
  run.ranks[0].first_step = run.ranks[1].first_step = 1;
  EXPECT_TRUE(run.ranks.all_ready());
  run.ranks[0].state = RankSeat::kEnded;
  EXPECT_FALSE(run.ranks.all_let_go());
  run.ranks[1].state = RankSeat::kLost;
  EXPECT_TRUE(run.ranks.all_let_go());
}

TEST(HangMax, FollowsThePrediction) {
  const Limits limits;
  Plan plan;
  plan.mutable_prediction()->set_step_seconds(0.1);
  EXPECT_EQ(HangMax(plan, limits), absl::Seconds(60));
  plan.mutable_prediction()->set_step_seconds(10);
  EXPECT_EQ(HangMax(plan, limits), absl::Seconds(200));
  plan.mutable_derived()->set_micro_batches(4);
  plan.mutable_derived()->set_validation_micro_batches(8);
  EXPECT_EQ(HangMax(plan, limits), absl::Seconds(600));
}

TEST(StepName, KnowsTheStartAndTheEnd) {
  TrainingSpec training;
  training.set_steps(10);
  JobStatus status;
  status.set_state(STARTING);
  EXPECT_EQ(StepName(status.state(), status.steps_done(), training),
            "its start");
  status.set_state(RUNNING);
  status.set_steps_done(9);
  EXPECT_EQ(StepName(status.state(), status.steps_done(), training), "step 10");
  status.set_steps_done(10);
  EXPECT_EQ(StepName(status.state(), status.steps_done(), training), "its end")
      << "its last checkpoint";
}

}  // namespace
}  // namespace troupe
