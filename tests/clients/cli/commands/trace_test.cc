#include "gtest/gtest.h"
#include "scheduler/passes/lanes.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class TraceTest : public CommandTestBase {};

TEST_F(TraceTest, DrawsInThreeForms) {
  *scheduler_.timeline.mutable_measured()->mutable_lanes() = AllLanes();
  // Two units of a stage: one bar, but two events.
  RankTimeline& rank = *scheduler_.timeline.mutable_measured()->add_ranks();
  for (int unit = 0; unit < 2; ++unit) {
    Span& span = *rank.add_spans();
    span.set_kind(Instruction::FORWARD);
    span.set_lane(LaneNamed("COMPUTE"));
    span.set_unit(unit);
    span.set_micro_batch(0);
    span.set_start_ns(unit * 1000);
    span.set_end_ns(unit * 1000 + 1000);
  }
  const std::string text = Ask({"trace", "1"}).out;
  EXPECT_NE(text.find("rank 0  compute  F0FFF"), std::string::npos) << text;
  EXPECT_NE(text.find("critical path: 0.00 ms: compute"), std::string::npos);
  EXPECT_EQ(text.find("predicted"), std::string::npos) << "there is none";
  const std::string chrome = Ask({"trace", "1", "--format", "chrome"}).out;
  EXPECT_NE(chrome.find("FORWARD unit 1, micro-batch 0"), std::string::npos);
  const std::string file = File("trace.svg", "");
  EXPECT_EQ(Ask({"trace", "1", "--format", "svg", "--out", file}).out,
            file + "\n");
  EXPECT_EQ(Content(file).substr(0, 4), "<svg");
  EXPECT_NE(Content(file).find("FORWARD units 0-1"), std::string::npos);
}

TEST_F(TraceTest, AsksForAStepAndDrawsByThePlansStages) {
  scheduler_.timeline.mutable_predicted()->set_predicted(true);
  *scheduler_.timeline.mutable_predicted()->mutable_lanes() = AllLanes();
  RankTimeline& rank = *scheduler_.timeline.mutable_predicted()->add_ranks();
  for (int unit = 0; unit < 2; ++unit) {
    Span& span = *rank.add_spans();
    span.set_kind(Instruction::FORWARD);
    span.set_lane(LaneNamed("COMPUTE"));
    span.set_unit(unit);
    span.set_micro_batch(0);
    span.set_start_ns(unit * 1000);
    span.set_end_ns(unit * 1000 + 1000);
    scheduler_.timeline.add_stages()->set_unit(unit);
  }
  const std::string svg =
      Ask({"trace", "1", "--step", "20", "--format", "svg"}).out;
  EXPECT_NE(svg.find("FORWARD unit 1, micro-batch 0"), std::string::npos);
  EXPECT_EQ(svg.find(">measured<"), std::string::npos) << "none was traced";
  EXPECT_EQ(scheduler_.asked().traced, std::vector<int64_t>{20});
}

TEST_F(TraceTest, SaysWhatIsWrong) {
  EXPECT_EQ(Ask({"trace", "1", "--format", "gif"}).code, 2);
  EXPECT_EQ(Ask({"trace", "1", "--out", "/no/such/file"}).code, 1);
  EXPECT_EQ(Ask({"trace", "9"}).err, "troupe: no job 9\n");
}

}  // namespace
}  // namespace troupe
