// Steps that take too long: what is said of them, and when.
#include <algorithm>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/run_control.h"
#include "tests/scheduler/cluster/harness.h"
#include "tests/scheduler/cluster/made_up_progress.h"

namespace troupe {
namespace {

RankProgress Computing(int64_t step, double seconds) {
  return Doing(step)
      .Since(seconds)
      .Runs(Forward(1, 0), seconds)
      .Waits(Reduce(2, 0), Forward(1, 0));
}
RankProgress Reducing(int64_t step, double seconds) {
  return Doing(step).Since(seconds).Runs(Reduce(2, 0), seconds);
}

// Two ranks that have taken a step of a tenth of a second.
class LateWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    on_ = h_.JoinMany(2);
    id_ = h_.Running(on_);
    for (int r = 0; r < 2; ++r) h_.Step(id_, r, on_[r], 1);
  }

  void Beat(int rank, const RankProgress& progress) {
    WorkerMessage message;
    *message.mutable_heartbeat()->mutable_progress() = progress;
    *message.mutable_heartbeat()->mutable_progress()->mutable_ref() =
        h_.Ref(id_, rank);
    h_.Send(on_[rank], message);
  }
  // A second passes in which both say what they do.
  void Second(const RankProgress& zero, const RankProgress& one) {
    for (int fifth = 0; fifth < 5; ++fifth) h_.Tick(absl::Milliseconds(200));
    Beat(0, zero);
    Beat(1, one);
  }
  // Rank 0 waits for rank 1, which computes, in the step that takes so long.
  void StuckFor(int seconds) {
    for (int s = 0; s < seconds; ++s) {
      ++stuck_;
      Second(Reducing(2, stuck_), Computing(2, stuck_));
    }
  }
  std::vector<std::string> Events() const {
    std::vector<std::string> late;
    for (const JobEvent& event : h_.job(id_).events) {
      if (absl::StartsWith(event.text(), "step ")) late.push_back(event.text());
    }
    return late;
  }
  const std::string& reason() const { return h_.status(id_).reason(); }

  Harness h_;
  std::vector<WorkerId> on_;
  JobId id_;
  int stuck_ = 0;
};

TEST_F(LateWatchTest, AStepThatIsLateSaysWhoWaitsForWhomOnce) {
  StuckFor(3);
  EXPECT_EQ(reason(), "");
  StuckFor(1);
  const std::vector<std::string> said = {
      "step 2 is late (3.2 s, 0.2 s expected): rank 0 waits in REDUCE_GRADS "
      "u2-3 for rank 1; rank 1 has been in FORWARD u1 m0 for 3.2 s (w1)"};
  EXPECT_EQ(Events(), said);
  EXPECT_EQ(reason(), said[0]);
  StuckFor(20);
  EXPECT_EQ(Events(), said) << "nothing has changed but the time";
  EXPECT_TRUE(absl::StartsWith(reason(), "step 2 is late (23 s")) << reason();
  EXPECT_EQ(h_.status(id_).state(), RUNNING);
}

TEST_F(LateWatchTest, AStepThatGoesOnSaysSo) {
  StuckFor(6);
  h_.ClearActions();
  Second(Computing(3, 0.1), Computing(3, 0.1));
  h_.Tick(absl::Milliseconds(200));
  EXPECT_EQ(reason(), "");
  ASSERT_EQ(Events().size(), 2u);
  EXPECT_EQ(Events()[1], "step 2 went on after 7.0 s");
  EXPECT_FALSE(h_.All<NotifyJob>().empty());
}

TEST_F(LateWatchTest, ItIsSaidAgainWhenOthersAreToBlame) {
  StuckFor(6);
  for (int s = 7; s < 16; ++s) {
    Second(Computing(2, s), Reducing(2, s));
  }
  ASSERT_EQ(Events().size(), 2u);
  EXPECT_TRUE(absl::StrContains(Events()[1],
                                "rank 1 waits in REDUCE_GRADS u2-3 for rank 0"))
      << Events()[1];
}

TEST_F(LateWatchTest, AStoppedWorkerIsNamedBeforeItIsLost) {
  Beat(0, Computing(2, 0.1));
  Beat(1, Computing(2, 0.1));
  for (int s = 1; h_.status(id_).state() == RUNNING; ++s) {
    ASSERT_LT(s, 8);
    for (int fifth = 0; fifth < 5; ++fifth) h_.Tick(absl::Milliseconds(200));
    Beat(0, Reducing(2, s));
  }
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0],
            "step 2 is late (3.2 s, 0.2 s expected): rank 0 waits in "
            "REDUCE_GRADS u2-3 for rank 1; rank 1 has not been heard for 3.2 "
            "s, and was in FORWARD u1 m0 (w1)");
  EXPECT_EQ(reason(),
            "w1 (rank 1) was lost in step 2: not heard for 5.2s; rank 0 waits "
            "in REDUCE_GRADS u2-3 for rank 1");
}

TEST_F(LateWatchTest, ValidationsAndCheckpointsAreNotLate) {
  for (const Program::Kind program :
       {Program::VALIDATE, Program::CHECKPOINT, Program::KIND_UNSPECIFIED}) {
    for (int s = 1; s < 10; ++s) {
      Second(Doing(1, program).Since(s).Runs(Forward(1, 0), s),
             Doing(1, program).Since(s).Runs(Forward(1, 0), s));
    }
  }
  // One has gone on, and waits for the other's checkpoint.
  for (int s = 1; s < 15; ++s) {
    Second(Reducing(2, s), Doing(1, Program::CHECKPOINT).Since(s + 30));
  }
  EXPECT_EQ(Events().size(), 0u) << Events()[0];
  // Time counts from when that is done.
  StuckFor(3);
  EXPECT_EQ(Events().size(), 0u);
  StuckFor(2);
  EXPECT_EQ(Events().size(), 1u);
}

TEST_F(LateWatchTest, TheFirstStepOfAnAttemptHasMoreTime) {
  Harness h;
  const WorkerId on = h.Join("w0");
  const JobId id = h.Running({on});
  std::string reason;
  for (int s = 1; s <= 11; ++s) {
    EXPECT_EQ(h.status(id).reason(), "") << s;
    WorkerMessage message;
    RankProgress& progress = *message.mutable_heartbeat()->mutable_progress();
    progress = Computing(1, s);
    *progress.mutable_ref() = h.Ref(id, 0);
    h.Tick(absl::Seconds(1));
    h.Send(on, message);
  }
  h.Tick(absl::Milliseconds(200));
  EXPECT_TRUE(absl::StartsWith(h.status(id).reason(), "step 1 is late (11 s"))
      << h.status(id).reason();
}

TEST_F(LateWatchTest, AHangSaysWhoWaited) {
  StuckFor(61);
  EXPECT_EQ(h_.status(id_).state(), STOPPING);
  EXPECT_EQ(reason(),
            "no progress for 1m in step 2; rank 0 waits in REDUCE_GRADS u2-3 "
            "for rank 1; rank 1 has been in FORWARD u1 m0 for 60 s (w1)");
}

TEST_F(LateWatchTest, ThereAreNotMoreThanSoManyEvents) {
  for (int step = 2; step < 200; ++step) {
    for (int s = 1; s < 5; ++s) {
      Second(Computing(step, s), Computing(step, s));
      // What a hang is looked for by.
      h_.Step(id_, 0, on_[0], 1);
    }
  }
  EXPECT_EQ(Events().size(), 100u);
  EXPECT_TRUE(absl::StartsWith(reason(), "step 199 is late")) << reason();
}

TEST_F(LateWatchTest, AStepThatIsReportedIsOver) {
  StuckFor(3);
  for (int r = 0; r < 2; ++r) h_.Step(id_, r, on_[r], 2);
  h_.Tick(absl::Milliseconds(800));
  EXPECT_EQ(reason(), "");
}

TEST_F(LateWatchTest, AStepThatIsReportedLateEndsNoLaterOne) {
  StuckFor(3);
  for (int r = 0; r < 2; ++r) h_.Step(id_, r, on_[r], 1);
  h_.Tick(absl::Milliseconds(800));
  EXPECT_TRUE(absl::StartsWith(reason(), "step 2 is late")) << reason();
}

TEST_F(LateWatchTest, ProgressOfOthersIsDropped) {
  WorkerMessage message;
  RankProgress& progress = *message.mutable_heartbeat()->mutable_progress();
  progress = Computing(2, 1000);
  for (const int rank : {-1, 1, 2, 1 << 30}) {
    *progress.mutable_ref() = h_.Ref(id_, 0);
    progress.mutable_ref()->set_rank(rank);
    h_.Send(on_[0], message);  // it has rank 0
  }
  *progress.mutable_ref() = h_.Ref(id_, 0);
  progress.mutable_ref()->set_attempt(0);
  h_.Send(on_[0], message);
  h_.Tick(absl::Milliseconds(200));
  EXPECT_EQ(reason(), "");
}

}  // namespace
}  // namespace troupe
