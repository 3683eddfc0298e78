// Ranks that do not hold the same loss and gradient norm: which is blamed, and
// from where the job goes on.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/cluster/recovery_harness.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct IntegrityHarness : RecoveryHarness {
  using RecoveryHarness::RecoveryHarness;

  // Each rank reports the step, with the loss that it holds; 2.5 where none is
  // given.
  void AllHold(JobId id, const std::vector<WorkerId>& on, int64_t step,
               const std::map<int, double>& losses = {}) {
    for (size_t r = 0; r < on.size(); ++r) {
      const int rank = static_cast<int>(r);
      const auto loss = losses.find(rank);
      Holds(id, rank, on[r], step, loss == losses.end() ? 2.5 : loss->second);
    }
  }
  void Holds(JobId id, int rank, WorkerId from, int64_t step, double loss) {
    WorkerMessage message;
    *message.mutable_step()->mutable_ref() = Ref(id, rank);
    StepRecord& record = *message.mutable_step()->mutable_record();
    record.set_step(step);
    record.set_loss(loss);
    Send(from, message);
  }
  void WritesShard(JobId id, int rank, WorkerId from, int64_t step) {
    WorkerMessage message;
    *message.mutable_shard()->mutable_ref() = Ref(id, rank);
    message.mutable_shard()->set_step(step);
    message.mutable_shard()->set_write(step);
    Send(from, message);
  }
  // Whether rank 0's worker was told to commit the checkpoint of this step.
  bool ToldToCommit(WorkerId rank_0, int64_t step) const {
    for (const SchedulerMessage& message : Sent(rank_0)) {
      if (message.has_commit() && message.commit().step() == step) return true;
    }
    return false;
  }
  // A job of three ranks whose rank 2 was wrong in step 3, and that goes on
  // after step 2; `on` are the workers of its second attempt, w3 among them,
  // which have not begun.
  JobId AfterAWrongStep(std::vector<WorkerId>& on) {
    on = JoinMany(3);
    const JobId id = Recovering(on);
    const WorkerId spare = Join("w3");
    for (int64_t step = 1; step <= 2; ++step) AllHold(id, on, step);
    AllHold(id, on, 3, {{2, 7}});
    for (int r = 0; r < 3; ++r) EndsKeeping(id, r, on[r], {2, 3});
    on[2] = spare;
    CHECK_EQ(Begun(spare).recovery().state().step(), 2);
    return id;
  }
};

TEST(RunIntegrity, TheRankThatDiffersIsNamed) {
  IntegrityHarness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Running(on);
  h.AllHold(id, on, 1);
  EXPECT_EQ(h.status(id).state(), RUNNING);
  h.AllHold(id, on, 2, {{1, 2.75}});
  EXPECT_EQ(h.status(id).state(), STOPPING);
  EXPECT_EQ(h.status(id).last_step().loss(), 2.5) << "what most hold";
  for (int r = 0; r < 3; ++r) {
    EXPECT_TRUE(h.Sent(on[r]).back().has_stop());
    h.Ended(id, r, on[r], {.ok = false, .error = "told to", .stopped = true});
  }
  EXPECT_EQ(h.status(id).state(), FAILED);
  EXPECT_THAT(h.status(id).reason(),
              HasSubstr("w1 (rank 1) is wrong in step 2: it has loss 2.75 "
                        "where rank 0 has 2.5; "));
}

TEST(RunIntegrity, AJobThatRecoversGoesOnWithoutItFromCopiesOfBefore) {
  IntegrityHarness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Recovering(on);
  const WorkerId spare = h.Join("w3");
  for (int64_t step = 1; step <= 4; ++step) h.AllHold(id, on, step);
  h.AllHold(id, on, 5, {{2, std::nextafter(2.5, 3)}});
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  // They were ahead of what the scheduler had heard.
  for (int r = 0; r < 3; ++r) h.EndsKeeping(id, r, on[r], {4, 5});
  EXPECT_EQ(h.Begun(spare).ref().rank(), 2);
  EXPECT_EQ(h.Begun(spare).recovery().state().step(), 4)
      << "that of step 5 may be wrong";
  EXPECT_THAT(h.Forgotten(on[2]), Not(IsEmpty()));
  EXPECT_EQ(h.worker(on[2]).state(), WorkerStatus::IDLE);
}

TEST(RunIntegrity, TheWrongWorkerGetsNoRankOfAnotherJob) {
  IntegrityHarness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Running(on);
  h.AllHold(id, on, 1, {{1, 2.75}});
  for (int r = 0; r < 3; ++r) {
    h.Ended(id, r, on[r], {.ok = false, .error = "told to", .stopped = true});
  }
  EXPECT_THAT(h.worker(on[1]).set_aside(),
              HasSubstr("it computed wrongly in step 1 of job 1"));
  EXPECT_TRUE(h.worker(on[0]).set_aside().empty());
  const JobId next = h.Submit(SpecOf(2));
  EXPECT_EQ(h.status(next).state(), STARTING);
  EXPECT_EQ(h.status(next).workers(0), "w0");
  EXPECT_EQ(h.status(next).workers(1), "w2");
}

// It is idle by then, and stays so.
TEST(RunIntegrity, TheWrongWorkerDoesNotTakeItsOwnPlace) {
  IntegrityHarness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Recovering(on);
  for (int64_t step = 1; step <= 2; ++step) h.AllHold(id, on, step);
  h.AllHold(id, on, 3, {{0, 7}});
  for (int r = 0; r < 3; ++r) h.EndsKeeping(id, r, on[r], {2, 3});
  h.Tick(absl::Seconds(1));
  EXPECT_EQ(h.worker(on[0]).state(), WorkerStatus::IDLE);
  EXPECT_EQ(h.status(id).attempt(), 1);
  EXPECT_THAT(h.status(id).reason(), HasSubstr("to take the place of w0"));
}

TEST(RunIntegrity, WithoutAnyCopyOfBeforeItGoesOnFromTheCheckpoint) {
  IntegrityHarness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Recovering(on);
  const WorkerId spare = h.Join("w3");
  for (int64_t step = 1; step <= 4; ++step) h.AllHold(id, on, step);
  h.Commits(id, on[0], 3);
  h.AllHold(id, on, 5, {{2, 7}});
  for (int r = 0; r < 3; ++r) h.EndsKeeping(id, r, on[r], {5, 6});
  EXPECT_FALSE(h.Begun(spare).has_recovery());
  EXPECT_EQ(h.Begun(spare).resume(), "/c/step-3");
}

// What runs again is right, and as good as what ran before.
TEST(RunIntegrity, CheckpointsOfStepsThatRunAgainAreCommitted) {
  IntegrityHarness h;
  std::vector<WorkerId> on;
  const JobId id = h.AfterAWrongStep(on);
  h.AllReady(id, on, 3);
  h.AllHold(id, on, 3);
  for (int r = 0; r < 3; ++r) h.WritesShard(id, r, on[r], 3);
  EXPECT_TRUE(h.ToldToCommit(on[0], 3));
}

// Its shards came while the ranks were being stopped.
TEST(RunIntegrity, ACheckpointOfAWrongStepIsNotCommitted) {
  IntegrityHarness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Recovering(on);
  for (int64_t step = 1; step <= 2; ++step) h.AllHold(id, on, step);
  h.AllHold(id, on, 3, {{2, 7}});
  for (int r = 0; r < 3; ++r) h.WritesShard(id, r, on[r], 3);
  EXPECT_FALSE(h.ToldToCommit(on[0], 3));
}

// Nobody could cordon it, for it was gone and forgotten.
TEST(RunIntegrity, NorDoesOneThatIsForgottenTakeAPlaceInALaterAttempt) {
  Limits limits;
  limits.gone_workers_kept = 0;
  IntegrityHarness h(limits);
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Recovering(on);
  for (int64_t step = 1; step <= 2; ++step) h.AllHold(id, on, step);
  h.Holds(id, 2, on[2], 3, 7);
  h.Disconnect(on[2], "connection closed");
  for (const int r : {0, 1}) h.Holds(id, r, on[r], 3, 2.5);
  const WorkerId spare = h.Join("w3");
  for (const int r : {0, 1}) h.EndsKeeping(id, r, on[r], {2, 3});
  ASSERT_EQ(h.Begun(spare).recovery().state().step(), 2);
  const WorkerId back = h.Join("w2");
  EXPECT_EQ(h.worker(back).set_aside(), "");
  h.Disconnect(spare, "connection closed");
  for (const int r : {0, 1}) h.EndsKeeping(id, r, on[r], {2, 3});
  EXPECT_EQ(h.status(id).attempt(), 2);
  EXPECT_THAT(h.status(id).reason(), HasSubstr("to take the place of w3"));
}

// A person has tested its machine.
TEST(RunIntegrity, AWorkerThatIsPutBackMayTakeAPlaceAgain) {
  IntegrityHarness h;
  std::vector<WorkerId> on;
  const JobId id = h.AfterAWrongStep(on);
  h.Disconnect(on[2], "connection closed");
  for (const int r : {0, 1}) h.EndsKeeping(id, r, on[r], {2, 3});
  EXPECT_EQ(h.status(id).attempt(), 2) << "w2 is cordoned";
  CordonWorkerRequest request;
  request.set_name("w2");
  ASSERT_TRUE(h.cluster.CordonWorker(request, h.now, h.actions).ok());
  h.Compile();
  EXPECT_EQ(h.status(id).attempt(), 3) << h.status(id).reason();
  EXPECT_EQ(h.status(id).workers(2), "w2");
}

TEST(RunIntegrity, CopiesOfStepsThatRunAgainAreGoneOnFrom) {
  IntegrityHarness h;
  std::vector<WorkerId> on;
  const JobId id = h.AfterAWrongStep(on);
  h.AllReady(id, on, 3);
  for (int64_t step = 3; step <= 4; ++step) h.AllHold(id, on, step);
  h.EndsKeeping(id, 0, on[0], {3, 4}, "no power");
  for (int r = 1; r < 3; ++r) h.EndsKeeping(id, r, on[r], {3, 4});
  EXPECT_EQ(h.Begun(on[0]).ref().attempt(), 3);
  EXPECT_EQ(h.Begun(on[0]).recovery().state().step(), 4);
}

// Its workers have not dropped what they keep of the wrong step.
TEST(RunIntegrity, OfAnAttemptThatNeverBeganTheWrongStepIsNotUsed) {
  IntegrityHarness h;
  std::vector<WorkerId> on;
  const JobId id = h.AfterAWrongStep(on);
  const WorkerId spare = h.Join("w4");
  h.Disconnect(on[2], "no power");
  for (int r = 0; r < 2; ++r) h.EndsKeeping(id, r, on[r], {2, 3});
  EXPECT_EQ(h.Begun(spare).ref().attempt(), 3);
  EXPECT_EQ(h.Begun(spare).recovery().state().step(), 2);
}

// Rank 4 fails before it has reported the step, of which three of five agree.
TEST(RunIntegrity, AStepThatNotAllReportedIsCompared) {
  IntegrityHarness h;
  const std::vector<WorkerId> on = h.JoinMany(5);
  const JobId id = h.Recovering(on);
  const WorkerId spare = h.Join("w5");
  for (int64_t step = 1; step <= 4; ++step) h.AllHold(id, on, step);
  for (int r = 0; r < 4; ++r) h.Holds(id, r, on[r], 5, r == 1 ? 7 : 2.5);
  EXPECT_EQ(h.status(id).state(), RUNNING);
  h.EndsKeeping(id, 4, on[4], {3, 4}, "no power");
  for (int r = 0; r < 4; ++r) h.EndsKeeping(id, r, on[r], {4, 5});
  EXPECT_EQ(h.Begun(spare).ref().rank(), 1);
  EXPECT_EQ(h.Begun(spare).recovery().state().step(), 4);
  EXPECT_THAT(h.Forgotten(on[1]), Not(IsEmpty()));
  EXPECT_EQ(h.worker(on[1]).state(), WorkerStatus::IDLE);
  std::vector<std::string> said;
  for (const JobEvent& event : h.job(id).events) said.push_back(event.text());
  EXPECT_THAT(said, Contains(HasSubstr("w1 (rank 1) is wrong in step 5: it has "
                                       "loss 7 where rank 0 has 2.5; ")));
}

TEST(RunIntegrity, OneThatHasEndedGivesUpWhatItKept) {
  IntegrityHarness h;
  const std::vector<WorkerId> on = h.JoinMany(3);
  const JobId id = h.Recovering(on);
  const WorkerId spare = h.Join("w3");
  for (int64_t step = 1; step <= 2; ++step) h.AllHold(id, on, step);
  h.Holds(id, 1, on[1], 3, 7);
  h.EndsKeeping(id, 1, on[1], {2, 3}, "no power");
  EXPECT_NE(h.worker(on[1]).state(), WorkerStatus::IDLE);
  for (const int r : {0, 2}) h.Holds(id, r, on[r], 3, 2.5);
  EXPECT_EQ(h.worker(on[1]).state(), WorkerStatus::IDLE);
  EXPECT_THAT(h.Forgotten(on[1]), Not(IsEmpty()));
  for (const int r : {0, 2}) h.EndsKeeping(id, r, on[r], {2, 3});
  EXPECT_EQ(h.Begun(spare).ref().rank(), 1);
  EXPECT_EQ(h.Begun(spare).recovery().state().step(), 2);
}

TEST(RunIntegrity, OfTwoBothAreNamedAndBothGoOn) {
  IntegrityHarness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Recovering(on);
  h.AllHold(id, on, 1);
  h.AllHold(id, on, 2, {{1, 2.25}});
  EXPECT_EQ(h.status(id).state(), RECOVERING);
  EXPECT_THAT(h.status(id).reason(),
              HasSubstr("w1 (rank 1) and w0 (rank 0) differ in step 2: rank 1 "
                        "has loss 2.25 where rank 0 has 2.5; "));
  for (int r = 0; r < 2; ++r) h.EndsKeeping(id, r, on[r], {1, 2});
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(h.Begun(on[r]).ref().attempt(), 2);
    EXPECT_EQ(h.Begun(on[r]).recovery().state().step(), 1);
  }
}

// A step that is skipped (fp16), or, of a loss that is none, the last one.
TEST(RunIntegrity, BitsAreCompared) {
  IntegrityHarness h;
  const std::vector<WorkerId> on = h.JoinMany(2);
  const JobId id = h.Running(on);
  h.AllHold(id, on, 1, {{0, INFINITY}, {1, INFINITY}});
  h.AllHold(id, on, 2, {{0, NAN}, {1, NAN}});
  EXPECT_EQ(h.status(id).state(), RUNNING);
  h.AllHold(id, on, 3, {{0, 0.0}, {1, -0.0}});
  EXPECT_EQ(h.status(id).state(), STOPPING);
}

}  // namespace
}  // namespace troupe
