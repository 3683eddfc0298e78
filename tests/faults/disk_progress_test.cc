// Jobs whose ranks read and write for longer than any deadline: bytes are
// progress.
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "scheduler/cluster/run_control.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

constexpr int64_t kMegabyte = 1'000'000;

class DiskProgressTest : public testing::Test {
 protected:
  DiskProgressTest() : on_(h_.JoinMany(2)) {}

  // A second in which rank 1's disk comes to `megabytes` of 900 MB, and rank 0
  // waits for it.
  void Second(JobId id, int64_t megabytes, bool writes) {
    h_.Heartbeat(on_[0]);
    WorkerMessage message;
    RankProgress& progress = *message.mutable_heartbeat()->mutable_progress();
    *progress.mutable_ref() = h_.Ref(id, 1);
    DiskProgress& disk = *progress.mutable_disk();
    disk.set_writes(writes);
    disk.set_step(5);
    disk.set_bytes(megabytes * kMegabyte);
    disk.set_bytes_total(900 * kMegabyte);
    disk.set_seconds(static_cast<double>(megabytes));
    h_.Send(on_[1], message);
    for (int fifth = 0; fifth < 5; ++fifth) h_.Tick(absl::Milliseconds(200));
  }
  // A disk of 1 MB/s.
  void Seconds(JobId id, int count, bool writes) {
    for (int second = 1; second <= count; ++second) {
      Second(id, second, writes);
    }
  }

  Harness h_;
  const std::vector<WorkerId> on_;
};

TEST_F(DiskProgressTest, AWriteOfMinutesIsNoHang) {
  const JobId id = h_.Running(on_);
  Seconds(id, 300, /*writes=*/true);
  EXPECT_EQ(h_.status(id).state(), RUNNING) << h_.status(id).reason();
}

TEST_F(DiskProgressTest, ADiskThatDoesNotGetOnIsOneAndIsNamed) {
  const JobId id = h_.Running(on_);
  Seconds(id, 20, /*writes=*/true);
  for (int second = 0; second < 61; ++second) Second(id, 20, true);
  EXPECT_EQ(h_.status(id).state(), STOPPING);
  EXPECT_EQ(
      h_.status(id).reason(),
      "no progress for 1m in step 1; rank 1 has written 19.1 MiB of 858 "
      "MiB of the checkpoint of step 5 in 20 s, nothing more for 60 s (w1)");
}

TEST_F(DiskProgressTest, AReadOfMinutesIsNoLateStart) {
  const JobId id = h_.Submit(SpecOf(2));
  h_.Ready(id, 0, on_[0]);
  Seconds(id, 900, /*writes=*/false);
  EXPECT_EQ(h_.status(id).state(), STARTING) << h_.status(id).reason();
  for (int second = 0; second < 301; ++second) Second(id, 900, false);
  EXPECT_EQ(h_.status(id).state(), STOPPING);
  EXPECT_TRUE(absl::StartsWith(
      h_.status(id).reason(),
      "w1 (rank 1) was not ready within 5m; rank 1 has read 858 MiB of 858 MiB "
      "of what it starts with in 900 s, nothing more for 300 s"))
      << h_.status(id).reason();
}

TEST_F(DiskProgressTest, WhoSavesBeforeItEndsHasTheTimeThatItTakes) {
  const JobId id = h_.Running(on_);
  h_.Step(id, 0, on_[0], 1);
  h_.Step(id, 1, on_[1], 1);
  h_.cluster.Drain("the scheduler was asked to end", h_.now, h_.actions);
  Seconds(id, 300, /*writes=*/true);
  EXPECT_EQ(h_.status(id).state(), STOPPING) << h_.status(id).reason();
  for (const WorkerId worker : on_) {
    EXPECT_EQ(h_.worker(worker).state(), WorkerStatus::BUSY)
        << h_.worker(worker).reason();
  }
}

TEST_F(DiskProgressTest, AllHearOfACommitThatIsRecorded) {
  const JobId id = h_.Running(on_);
  h_.ClearActions();
  WorkerMessage message;
  CheckpointCommitted& committed = *message.mutable_committed();
  *committed.mutable_ref() = h_.Ref(id, 0);
  committed.mutable_checkpoint()->set_step(5);
  h_.Send(on_[0], message);
  // Rank 0, too, which removes older ones then.
  for (const int rank : {0, 1}) {
    const std::vector<SchedulerMessage> sent = h_.Sent(on_[rank]);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].done().step(), 5);
    EXPECT_EQ(sent[0].done().ref().rank(), rank);
  }
  ASSERT_FALSE(h_.actions.empty());
  EXPECT_TRUE(std::holds_alternative<PersistJob>(h_.actions.front()));
}

TEST_F(DiskProgressTest, RanksThatBeginWithDifferentStepsFailTheStart) {
  const JobId id = h_.Submit(SpecOf(2));
  h_.Ready(id, 0, on_[0], /*first_step=*/11);
  h_.Ready(id, 1, on_[1], /*first_step=*/6);
  EXPECT_EQ(h_.status(id).state(), STOPPING);
  EXPECT_EQ(h_.status(id).reason(),
            "w1 (rank 1) begins with step 6, and w0 (rank 0) with step 11");
}

}  // namespace
}  // namespace troupe
