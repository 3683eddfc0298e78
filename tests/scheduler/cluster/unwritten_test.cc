// Checkpoints that could not be written, as the scheduler sees them.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/run_control.h"
#include "tests/scheduler/cluster/restart_harness.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr char kFull[] = "/c/step-5.tmp-x/rank-00001: write: ENOSPC";

WorkerMessage WrittenBy(const Harness& h, JobId id, int rank, int64_t step,
                        int64_t write) {
  WorkerMessage message;
  *message.mutable_shard()->mutable_ref() = h.Ref(id, rank);
  message.mutable_shard()->set_step(step);
  message.mutable_shard()->set_write(write);
  return message;
}

WorkerMessage UnwrittenBy(const Harness& h, JobId id, int rank, int64_t step,
                          int64_t write, const std::string& error) {
  WorkerMessage message;
  *message.mutable_unwritten()->mutable_ref() = h.Ref(id, rank);
  message.mutable_unwritten()->set_step(step);
  message.mutable_unwritten()->set_write(write);
  message.mutable_unwritten()->set_error(error);
  return message;
}

WorkerMessage CommittedBy(const Harness& h, JobId id, int64_t step) {
  WorkerMessage message;
  CheckpointCommitted& committed = *message.mutable_committed();
  *committed.mutable_ref() = h.Ref(id, 0);
  committed.mutable_checkpoint()->set_step(step);
  committed.mutable_checkpoint()->set_path(absl::StrCat("/c/step-", step));
  return message;
}

// What the worker was told to be given up since the last call; empty: nothing.
std::string GivenUp(const Harness& h, WorkerId to) {
  for (const SchedulerMessage& message : h.Sent(to)) {
    if (message.has_done()) return message.done().given_up();
  }
  return "";
}

bool Asked(const Harness& h, WorkerId to) {
  for (const SchedulerMessage& message : h.Sent(to)) {
    if (message.has_commit()) return true;
  }
  return false;
}

class UnwrittenTest : public testing::Test {
 protected:
  std::string LastEvent() const { return h_.job(id_).events.back().text(); }
  // Both ranks answer for a step that rank 1 could not write.
  void GiveUp(int64_t step) {
    ++write_;
    h_.Send(on_[1], UnwrittenBy(h_, id_, 1, step, write_, kFull));
    h_.Send(on_[0], WrittenBy(h_, id_, 0, step, write_));
  }
  void Write(int64_t step) {
    ++write_;
    for (const int rank : {1, 0}) {
      h_.Send(on_[rank], WrittenBy(h_, id_, rank, step, write_));
    }
  }

  int64_t write_ = 0;
  Harness h_;
  const std::vector<WorkerId> on_ = h_.JoinMany(2);
  const JobId id_ = h_.Running(on_);
};

TEST_F(UnwrittenTest, CostsNoRestart) {
  h_.ClearActions();
  h_.Send(on_[1], UnwrittenBy(h_, id_, 1, 5, 1, kFull));
  EXPECT_EQ(GivenUp(h_, on_[1]), "") << "rank 0 still writes";
  h_.Send(on_[0], WrittenBy(h_, id_, 0, 5, 1));
  for (const WorkerId worker : on_) {
    EXPECT_THAT(GivenUp(h_, worker), HasSubstr(kFull));
    EXPECT_FALSE(Asked(h_, worker));
  }
  const JobStatus& status = h_.status(id_);
  EXPECT_EQ(status.state(), RUNNING);
  EXPECT_EQ(status.restarts(), 0);
  EXPECT_EQ(status.unsaved(), absl::StrCat("w1 (rank 1): ", kFull));
  EXPECT_EQ(status.unsaved_step(), 5);
  EXPECT_EQ(status.unsaved_since_unix_ms(), absl::ToUnixMillis(h_.now));
  EXPECT_THAT(LastEvent(), HasSubstr(kFull));
}

TEST_F(UnwrittenTest, SaysSoUntilOneIsWritten) {
  GiveUp(5);
  const size_t events = h_.job(id_).events.size();
  const int64_t since = h_.status(id_).unsaved_since_unix_ms();
  h_.Tick(absl::Seconds(1));
  GiveUp(6);
  EXPECT_EQ(h_.job(id_).events.size(), events) << "the status says the rest";
  EXPECT_EQ(h_.status(id_).unsaved_step(), 6);
  EXPECT_EQ(h_.status(id_).unsaved_since_unix_ms(), since);
  Write(7);
  h_.Send(on_[0], CommittedBy(h_, id_, 7));
  EXPECT_EQ(h_.status(id_).unsaved(), "");
  EXPECT_EQ(h_.status(id_).unsaved_since_unix_ms(), 0);
}

TEST_F(UnwrittenTest, TheSameStepIsTriedAgain) {
  GiveUp(10);
  h_.ClearActions();
  Write(10);
  EXPECT_TRUE(Asked(h_, on_[0]));
  h_.Send(on_[0], UnwrittenBy(h_, id_, 0, 10, write_, "manifest.json: ENOSPC"));
  EXPECT_THAT(GivenUp(h_, on_[1]), HasSubstr("manifest.json"));
  Write(10);
  h_.Send(on_[0], CommittedBy(h_, id_, 10));
  EXPECT_EQ(h_.status(id_).checkpoints_size(), 1);
  EXPECT_EQ(h_.status(id_).state(), RUNNING);
}

// Every step is done, and the disk is full for an hour.
TEST_F(UnwrittenTest, NoJobIsLostAtItsEnd) {
  for (const int rank : {0, 1}) h_.Step(id_, rank, on_[rank], 10);
  for (int i = 0; i < 120; ++i) {
    GiveUp(10);
    h_.Pass(absl::Seconds(30), on_);
  }
  EXPECT_EQ(h_.status(id_).state(), RUNNING) << h_.status(id_).reason();
  ASSERT_TRUE(h_.cluster.Cancel(id_, h_.now, h_.actions).ok());
  for (const int rank : {0, 1}) {
    h_.Ended(id_, rank, on_[rank], {.ok = false, .stopped = true});
  }
  EXPECT_EQ(h_.status(id_).state(), CANCELLED);
  EXPECT_THAT(h_.status(id_).reason(), HasSubstr(kFull));
}

// Nothing of it is stored, and rank 1 has not heard it. Rank 0 has, and trains
// on; it says again what it answered.
TEST_F(UnwrittenTest, ASchedulerThatReturnsSaysItAgain) {
  for (const int rank : {0, 1}) h_.Step(id_, rank, on_[rank], 5);
  const auto after = Restarted(h_);
  std::vector<WorkerId> on;
  for (const int rank : {0, 1}) {
    on.push_back(
        ComeBack(*after, absl::StrCat("w", rank), HeldOf(id_, rank, 1, 5)));
  }
  EXPECT_EQ(after->status(id_).state(), RUNNING);
  after->ClearActions();
  after->Send(on[1], UnwrittenBy(*after, id_, 1, 5, 1, kFull));
  EXPECT_EQ(GivenUp(*after, on[1]), "");
  after->Send(on[0], WrittenBy(*after, id_, 0, 5, 1));
  EXPECT_THAT(GivenUp(*after, on[1]), HasSubstr(kFull));
}

// Rank 0 has come to the next checkpoint.
TEST_F(UnwrittenTest, ARankThatHasGoneOnTellsTheNextScheduler) {
  for (const int rank : {0, 1}) h_.Step(id_, rank, on_[rank], 6);
  const auto after = Restarted(h_);
  std::vector<WorkerId> on;
  for (const int rank : {0, 1}) {
    on.push_back(
        ComeBack(*after, absl::StrCat("w", rank), HeldOf(id_, rank, 1, 6)));
  }
  after->ClearActions();
  after->Send(on[0], WrittenBy(*after, id_, 0, 6, 2));
  after->Send(on[1], WrittenBy(*after, id_, 1, 5, 1));
  EXPECT_THAT(GivenUp(*after, on[1]), HasSubstr("a rank could not write"));
  EXPECT_EQ(GivenUp(*after, on[0]), "");
  after->Send(on[1], WrittenBy(*after, id_, 1, 6, 2));
  EXPECT_TRUE(Asked(*after, on[0]));
}

}  // namespace
}  // namespace troupe
