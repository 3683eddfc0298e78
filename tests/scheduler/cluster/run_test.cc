#include "scheduler/cluster/run.h"

#include <map>

#include "gtest/gtest.h"
#include "scheduler/cluster/stored_run.h"

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

// Where replicas take turns, the others validate together when the slowest has
// done its step: that is as long as all others need for one each, on average.
TEST(Run, ACollectiveWaitsForAReplicasStep) {
  Limits limits;
  limits.collective_min = absl::Seconds(30);
  limits.hang_steps = 20;
  Plan plan;
  plan.mutable_prediction()->set_step_seconds(1);
  EXPECT_EQ(CollectiveMax(plan, limits), absl::Seconds(30));
  plan.mutable_prediction()->set_step_seconds(2);
  EXPECT_EQ(CollectiveMax(plan, limits), absl::Seconds(40));
  plan.mutable_job()->mutable_parallelism()->set_data(10);
  EXPECT_EQ(CollectiveMax(plan, limits), absl::Seconds(40));
  plan.mutable_derived()->set_takes_turns(true);
  EXPECT_EQ(CollectiveMax(plan, limits), absl::Seconds(400));
}

// The whole way of a run from one scheduler to the next one.
RunPhase OfTheNextScheduler(const struct Run& run, JobStatus status,
                            StoredRun* stored) {
  status.set_phase(KindOf(run.phase));
  JobStatus row = status;
  WriteRun(StoreRun(run, status), row);
  *stored = TakeRun(row, /*cancelled=*/false);
  EXPECT_EQ(row.ended_ranks_size(), 0) << "it is in the run again";
  return ResumePhase(*stored, row, absl::FromUnixSeconds(9));
}

TEST(StoredRun, EachPhaseIsResumed) {
  JobStatus status;
  status.set_state(RECOVERING);
  status.set_reason("attempt 2 from copies of step 7");
  status.set_intent(INTENT_SAVE_MOVE);
  const phase::Stopped stopped = {.goes_on = true, .blame = Blame::kRank};
  const phase::Between between(stopped, absl::UnixEpoch());
  struct Run run(2, Plan(), {});
  run.ranks[1].end_to_store = 17;
  StoredRun stored;
  for (const RunPhase& phase :
       {RunPhase(phase::Storing()), RunPhase(phase::Starting()),
        RunPhase(phase::Training()), RunPhase(phase::Adopting())}) {
    run.phase = phase;
    run.phase = OfTheNextScheduler(run, status, &stored);
    ASSERT_TRUE(run.is<phase::Adopting>()) << phase.index();
    EXPECT_EQ(BeginsOf(run.phase), status.reason());
    EXPECT_EQ(stored.ended, (std::map<int, int64_t>{{1, 17}}));
  }
  for (const RunPhase& phase :
       {RunPhase(phase::Stopping(stopped)), RunPhase(phase::LetGo(stopped)),
        RunPhase(phase::AwaitPlaces(between)),
        RunPhase(phase::SavingCopies(between))}) {
    run.phase = phase;
    run.phase = OfTheNextScheduler(run, status, &stored);
    ASSERT_TRUE(run.is<phase::Stopping>()) << phase.index();
    EXPECT_TRUE(run.stopped()->goes_on);
    EXPECT_EQ(run.stopped()->since, absl::FromUnixSeconds(9));
    EXPECT_EQ(run.stopped()->cause, status.reason());
    EXPECT_EQ(stored.intent_now(), INTENT_RECOVER) << "some may have saved";
  }
}

TEST(StoredRun, SaysWhyItWasToBeSaved) {
  JobStatus status;
  struct Run run(1, Plan(), {});
  run.phase = phase::Stopping();
  const std::string why = "cancelled by its user";
  StoredRun stored;
  for (const JobIntent intent :
       {INTENT_RECOVER, INTENT_SAVE_MOVE, INTENT_SAVE_CANCEL, INTENT_CANCEL}) {
    run.intent = MakeIntent(intent, why);
    EXPECT_EQ(KindOf(run.intent), intent);
    EXPECT_EQ(WhyOf(run.intent), intent == INTENT_RECOVER ? "" : why);
    status.set_intent(intent);
    OfTheNextScheduler(run, status, &stored);
    EXPECT_EQ(stored.save_why, intent >= INTENT_SAVE_CANCEL ? why : "");
  }
  status.set_save_why("of another one");
  WriteNoRun(status);
  EXPECT_EQ(status.save_why(), "");
}

// Before protocol 17 the phase was not stored.
TEST(StoredRun, IsReadOfAnOlderBuild) {
  JobStatus status;
  status.set_state(RUNNING);
  EXPECT_FALSE(TakeRun(status, false).stops());
  EXPECT_TRUE(TakeRun(status, true).stops());
  EXPECT_EQ(TakeRun(status, true).intent_now(), INTENT_CANCEL);
  status.set_state(RECOVERING);
  EXPECT_FALSE(TakeRun(status, false).stops());
  status.set_attempt_over(true);
  StoredRun stored = TakeRun(status, false);
  EXPECT_TRUE(stored.stops());
  EXPECT_TRUE(stored.goes_on);
  EXPECT_EQ(stored.intent_now(), INTENT_RECOVER);
  EXPECT_FALSE(status.attempt_over());
  status.set_save_why("the cluster was asked to end");
  stored = TakeRun(status, false);
  EXPECT_EQ(stored.intent_now(), INTENT_SAVE_CANCEL);
  EXPECT_EQ(stored.save_why, "the cluster was asked to end");
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
