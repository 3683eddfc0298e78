#include "proto/plan/span.h"

#include "gtest/gtest.h"
#include "proto/plan/program_text.h"

namespace troupe {
namespace {

TEST(SpanOf, SaysWhatTheInstructionSays) {
  const auto program =
      ParseProgram("A g0\nS u3 m1 +2 p5 g1 @GRADIENTS\nR u1-2 g0");
  ASSERT_TRUE(program.ok()) << program.status();
  const Span send = SpanOf(program->instructions(1), 1);
  EXPECT_EQ(send.instruction(), 1);
  EXPECT_EQ(send.kind(), Instruction::SEND);
  EXPECT_EQ(send.lane(), GRADIENTS);
  EXPECT_EQ(send.unit(), 3);
  EXPECT_EQ(send.micro_batch(), 1);
  EXPECT_EQ(send.peer(), 5);
  EXPECT_EQ(send.ahead(), 2);
  EXPECT_EQ(SpanOf(program->instructions(2), 2).unit_count(), 2);
  const Span sum = SpanOf(program->instructions(0), 0);
  EXPECT_FALSE(sum.has_unit() || sum.has_micro_batch() || sum.has_peer());
}

}  // namespace
}  // namespace troupe
