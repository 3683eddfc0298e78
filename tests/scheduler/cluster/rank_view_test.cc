#include "scheduler/cluster/rank_view.h"

#include "gtest/gtest.h"
#include "scheduler/passes/lanes.h"
#include "tests/scheduler/cluster/made_up_progress.h"

namespace troupe {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1000);

std::string Words(const RankProgress& progress, absl::Duration ago) {
  const RankReport report = {
      .worker_name = "w4", .heard = kNow - ago, .progress = progress};
  return EndWords(4, report,
                  ViewOf(report, AllLanes(),
                         {.now = kNow, .silent_after = absl::Seconds(2)}));
}

TEST(RankView, SaysWhatARankDoes) {
  const absl::Duration second = absl::Seconds(1);
  EXPECT_EQ(Words(Doing(3).Runs(Forward(6, 3), 30), second),
            "rank 4 has been in FORWARD u6 m3 for 31 s (w4)");
  EXPECT_EQ(Words(Doing(3, Program::VALIDATE).Runs(Forward(6, 3), 30), second),
            "rank 4 has been in FORWARD u6 m3 of VALIDATE for 31 s (w4)");
  EXPECT_EQ(Words(Doing(3).Runs(Reduce(6, 0), 30), second),
            "rank 4 has been in REDUCE_GRADS u6-7 for 31 s, and so have all "
            "that it needs (w4)");
  EXPECT_EQ(Words(Doing(3, Program::KIND_UNSPECIFIED).Since(7.2), second),
            "rank 4 has been between programs for 8.2 s, after step 3 (w4)");
}

TEST(RankView, SaysHowFarADiskIs) {
  RankProgress progress = Doing(3, Program::KIND_UNSPECIFIED);
  DiskProgress& disk = *progress.mutable_disk();
  disk.set_writes(true);
  disk.set_step(50);
  disk.set_seconds(14);
  disk.set_bytes(int64_t{3} << 30);
  disk.set_bytes_total(int64_t{12} << 30);
  const RankReport report = {.worker_name = "w4",
                             .heard = kNow - absl::Seconds(1),
                             .progress = progress,
                             .disk_moved = kNow - absl::Seconds(61)};
  EXPECT_EQ(
      EndWords(4, report,
               ViewOf(report, AllLanes(),
                      {.now = kNow, .silent_after = absl::Seconds(2)})),
      "rank 4 has written 3.00 GiB of 12.0 GiB of the checkpoint of step 50 in "
      "15 s, nothing more for 61 s (w4)");
}

TEST(RankView, SaysWhereASilentRankWas) {
  EXPECT_EQ(Words(Doing(3).Runs(Forward(6, 3), 30), absl::Seconds(6)),
            "rank 4 has not been heard for 6.0 s, and was in FORWARD u6 m3 "
            "(w4)");
  EXPECT_EQ(Words(Doing(3, Program::KIND_UNSPECIFIED), absl::Seconds(6)),
            "rank 4 has not been heard for 6.0 s (w4)");
}

// What is dealt over a group is each rank's own affair.
TEST(RankView, WhoDoesItsShareWaitsForNobody) {
  Instruction norm = On(LaneNamed("COMPUTE"), Instruction::GRAD_NORM, 3);
  norm.set_group(0);
  EXPECT_EQ(Words(Doing(3).Runs(norm, 30), absl::Seconds(1)),
            "rank 4 has been in GRAD_NORM u3 for 31 s (w4)");
}

TEST(RankView, KnowsWhoNeedsOthers) {
  const auto state = [](const RankProgress& progress) {
    const RankReport report = {.heard = kNow, .progress = progress};
    return ViewOf(report, AllLanes(),
                  {.now = kNow, .silent_after = absl::Seconds(2)})
        .state;
  };
  EXPECT_EQ(state(Doing(3).Runs(Forward(6, 3), 1)), RankView::kAlone);
  EXPECT_EQ(state(Doing(3).Runs(Reduce(6, 0), 1)), RankView::kMeets);
  EXPECT_EQ(state(Doing(3).Runs(Send(6, 3, 1), 1)), RankView::kMeets);
}

TEST(SecondsWords, HasTwoDigitsOrSo) {
  EXPECT_EQ(SecondsWords(absl::Milliseconds(34'400)), "34 s");
  EXPECT_EQ(SecondsWords(absl::Milliseconds(2'140)), "2.1 s");
  EXPECT_EQ(SecondsWords(absl::Microseconds(12'300)), "0.012 s");
}

}  // namespace
}  // namespace troupe
