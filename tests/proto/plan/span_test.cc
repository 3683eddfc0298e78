#include "proto/plan/span.h"

#include <utility>

#include "gtest/gtest.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

TEST(SpanOf, SaysWhatTheInstructionSays) {
  const auto program =
      ParseProgram("A g0\nS u3 m1 +2 p5 g1 @GRADIENTS\nR u1-2 g0");
  ASSERT_TRUE(program.ok()) << program.status();
  const Span send = SpanOf(program->instructions(1), 1);
  EXPECT_EQ(send.instruction(), 1);
  EXPECT_EQ(send.kind(), Instruction::SEND);
  EXPECT_EQ(send.lane(), LaneNamed("GRADIENTS"));
  EXPECT_EQ(send.unit(), 3);
  EXPECT_EQ(send.micro_batch(), 1);
  EXPECT_EQ(send.peer(), 5);
  EXPECT_EQ(send.ahead(), 2);
  EXPECT_EQ(SpanOf(program->instructions(2), 2).unit_count(), 2);
  const Span sum = SpanOf(program->instructions(0), 0);
  EXPECT_FALSE(sum.has_unit() || sum.has_micro_batch() || sum.has_peer());
}

// Rank 5 of pipeline 2 x data 3 x tensor 2 is at 0, 2, 1.
TEST(NameRanks, PeersAreRanksAndGroupsNumberedThrough) {
  Plan plan;
  for (const auto& [name, size] :
       {std::pair("pipeline", 2), {"data", 3}, {"tensor", 2}}) {
    Axis& axis = *plan.mutable_mesh()->add_axes();
    axis.set_name(name);
    axis.set_size(size);
  }
  for (const char* axis : {"data", "tensor", "pipeline"}) {
    Group& group = *plan.add_groups();
    group.set_name(axis);
    group.add_spans()->set_axis(axis);
  }
  const auto program = ParseProgram("R u1 g0\nX u1 m0 g1\nS u3 m1 p1 g2");
  ASSERT_TRUE(program.ok()) << program.status();
  RankTimeline timeline;
  timeline.set_rank(5);
  for (int i = 0; i < 3; ++i) {
    *timeline.add_spans() = SpanOf(program->instructions(i), i);
  }
  NameRanks(plan, timeline);
  EXPECT_EQ(timeline.spans(0).group(), 1);      // of 4 along data
  EXPECT_EQ(timeline.spans(1).group(), 4 + 2);  // of 6 along tensor
  EXPECT_EQ(timeline.spans(2).peer(), 11);
}

}  // namespace
}  // namespace troupe
