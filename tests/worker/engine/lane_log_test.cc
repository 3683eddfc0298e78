#include "worker/engine/lane_log.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "proto/plan/program_text.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

// A program under way, and a clock in tenths of seconds.
class LaneLogTest : public testing::Test {
 protected:
  void Begin(const std::string& text) {
    absl::StatusOr<Program> program = ParseProgram(text);
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    queue_.emplace(program_, AllLanes());
    log_.emplace(program_, *queue_);
    queue_->Start();
  }
  void At(int tenths) { now_ns_ = (1000 + tenths) * 100'000'000LL; }
  void EndBefore() { log_->Begin(now_ns_); }
  void Start(int i) { log_->Start(i, now_ns_); }
  void Issue(int i) {
    log_->Issue(i, now_ns_);
    queue_->Issue(i);
  }
  void Finish(int i) {
    log_->Finish(i, now_ns_);
    queue_->Finish(i);
  }
  // "F u1 m0 for 0.5 s (F u0 m0); R u1 g0 waits for F u1 m0".
  std::string Text() const {
    std::string text;
    for (const LaneProgress& lane : log_->Progress(now_ns_)) {
      EXPECT_EQ(lane.lane(), lane.current().lane());
      EXPECT_EQ(lane.current().after_size(), 0);
      absl::StrAppend(&text, text.empty() ? "" : "; ",
                      InstructionText(lane.current()));
      if (lane.running()) {
        absl::StrAppendFormat(&text, " for %.1f s", lane.seconds());
      }
      if (lane.has_waits_for()) {
        absl::StrAppend(&text, " waits for ",
                        InstructionText(lane.waits_for()));
      }
      if (lane.has_finished()) {
        absl::StrAppend(&text, " (", InstructionText(lane.finished()), ")");
      }
    }
    return text;
  }

 private:
  Program program_;
  std::optional<ReadyQueue> queue_;
  std::optional<LaneLog> log_;
  int64_t now_ns_ = 0;
};

TEST_F(LaneLogTest, SaysWhatRunsAndWhatWaitsAndWhatWasLast) {
  Begin("F u0 m0\nF u1 m0\nR u1 g0 ^1\nO u1 ^2\n");
  At(0);
  Start(0);
  EXPECT_EQ(Text(), "F u0 m0 for 0.0 s; R u1 g0 waits for F u1 m0");
  At(5);
  EXPECT_EQ(Text(), "F u0 m0 for 0.5 s; R u1 g0 waits for F u1 m0");
  Finish(0);
  Start(1);
  At(6);
  EXPECT_EQ(Text(), "F u1 m0 for 0.1 s (F u0 m0); R u1 g0 waits for F u1 m0");
  Finish(1);
  // Handed out, not begun.
  EXPECT_EQ(Text(), "O u1 waits for R u1 g0 (F u1 m0); R u1 g0 for 0.0 s");
  Start(2);
  At(9);
  EXPECT_EQ(Text(), "O u1 waits for R u1 g0 (F u1 m0); R u1 g0 for 0.3 s");
  Finish(2);
  Start(3);
  EXPECT_EQ(Text(), "O u1 for 0.0 s (F u1 m0)");
  Finish(3);
  EXPECT_EQ(Text(), "");
}

TEST_F(LaneLogTest, ADeviceIsAtTheFirstThatItHasNotDone) {
  Begin("F u0 m0\nF u1 m0\nR u1 g0 ^1\nO u1 ^2\n");
  At(0);
  for (const int i : {0, 1, 2, 3}) {
    Start(i);
    Issue(i);
  }
  At(4);
  EXPECT_EQ(Text(), "F u0 m0 for 0.4 s; R u1 g0 waits for F u1 m0");
  Finish(0);
  At(6);
  EXPECT_EQ(Text(), "F u1 m0 for 0.2 s (F u0 m0); R u1 g0 waits for F u1 m0");
  Finish(1);
  At(9);
  EXPECT_EQ(Text(), "O u1 waits for R u1 g0 (F u1 m0); R u1 g0 for 0.3 s");
  Finish(2);
  At(10);
  EXPECT_EQ(Text(), "O u1 for 0.1 s (F u1 m0)");
  Finish(3);
  EXPECT_EQ(Text(), "");
}

TEST_F(LaneLogTest, ADeviceBeginsWhenTheRunBeforeHasEnded) {
  Begin("F u0 m0\nF u1 m0\n");
  At(0);
  for (const int i : {0, 1}) {
    Start(i);
    Issue(i);
  }
  At(5);
  EndBefore();
  At(6);
  EXPECT_EQ(Text(), "F u0 m0 for 0.1 s");
  Finish(0);
  At(8);
  EXPECT_EQ(Text(), "F u1 m0 for 0.2 s (F u0 m0)");
}

TEST_F(LaneLogTest, AnInstructionThatIsBeingEnqueuedRuns) {
  Begin("F u0 m0\nF u1 m0\n");
  At(0);
  Start(0);
  At(2);
  EXPECT_EQ(Text(), "F u0 m0 for 0.2 s");
}

}  // namespace
}  // namespace troupe
