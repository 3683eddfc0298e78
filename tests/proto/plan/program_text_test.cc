#include "proto/plan/program_text.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

void AddOperand(Instruction::Part part, int buffer, Instruction::Access access,
                Instruction& instruction) {
  Instruction::Operand& operand = *instruction.add_operands();
  operand.set_part(part);
  operand.set_buffer(buffer);
  operand.set_access(access);
}

TEST(ProgramText, WritesOneTokenAnInstruction) {
  Instruction forward;
  forward.set_kind(Instruction::FORWARD);
  forward.set_lane(LaneNamed("COMPUTE"));
  forward.set_unit(3);
  forward.set_micro_batch(1);
  EXPECT_EQ(InstructionText(forward), "F u3 m1");
  EXPECT_EQ(InstructionWords(forward), "FORWARD unit 3, micro-batch 1");
  AddOperand(Instruction::INPUT, 0, Instruction::READ, forward);
  AddOperand(Instruction::SAVED, 4, Instruction::WRITE, forward);
  forward.add_after(2);
  EXPECT_EQ(InstructionLongText(forward, AllLanes()),
            "F u3 m1 input<0 saved>4 ^2");
  EXPECT_EQ(InstructionText(forward), "F u3 m1");
}

TEST(ProgramText, NumbersOutputsAndInputs) {
  const std::string text = "V u3 o2 m1 p0 g1 grad";
  const auto recv = ParseInstruction(text, AllLanes());
  ASSERT_TRUE(recv.ok()) << recv.status();
  EXPECT_EQ(recv->output(), 2);
  EXPECT_EQ(InstructionText(*recv), text);
  const std::string read = "F u4 m1 input<0 input.1<3 output>5";
  const auto forward = ParseInstruction(read, AllLanes());
  ASSERT_TRUE(forward.ok()) << forward.status();
  EXPECT_EQ(forward->operands(1).port(), 1);
  EXPECT_EQ(InstructionLongText(*forward, AllLanes()), read);
  EXPECT_FALSE(ParseInstruction("F u4 m1 input.x<0", AllLanes()).ok());
}

TEST(ProgramText, NumbersParts) {
  for (const std::string text :
       {"N u1 q1 g0", "R u1 q0-2 g0", "R u1 q1-2 g0"}) {
    const auto instruction = ParseInstruction(text, AllLanes());
    ASSERT_TRUE(instruction.ok()) << instruction.status();
    EXPECT_EQ(InstructionText(*instruction), text);
  }
  EXPECT_FALSE(ParseInstruction("R u1 q2-1", AllLanes()).ok());
}

TEST(ProgramText, EveryKindGoesBothWays) {
  for (int number = Instruction::Kind_MIN + 1;
       number < Instruction::Kind_ARRAYSIZE; ++number) {
    if (!Instruction::Kind_IsValid(number)) continue;
    Instruction written;
    written.set_kind(static_cast<Instruction::Kind>(number));
    written.set_lane(LaneFor(written.kind()));
    written.set_gradient(number % 2 == 0);
    written.set_unit(2);
    written.set_unit_count(4);
    written.set_part(1);
    written.set_part_count(3);
    written.set_micro_batch(0);
    written.set_weight_version(7);
    written.set_peer(3);
    written.set_group(1);
    for (int access = 0; access < Instruction::Access_ARRAYSIZE; ++access) {
      AddOperand(Instruction::WEIGHT_GRADIENTS, 12 + access,
                 static_cast<Instruction::Access>(access), written);
    }
    written.add_after(0);
    absl::StatusOr<Instruction> read =
        ParseInstruction(InstructionLongText(written, AllLanes()));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->SerializeAsString(), written.SerializeAsString())
        << InstructionLongText(written, AllLanes());
  }
}

TEST(ProgramText, UnusualLanesAreWritten) {
  Instruction step;
  step.set_kind(Instruction::STEP);
  step.set_lane(LaneNamed("IO"));
  step.set_unit(1);
  EXPECT_EQ(InstructionText(step), "O u1");
  EXPECT_EQ(InstructionLongText(step, AllLanes()), "O u1 @IO");
  EXPECT_EQ(ParseInstruction("O u1 @IO")->lane(), LaneNamed("IO"));
}

// The table is the plan's: names, and what is usual, are not the code's.
TEST(ProgramText, ReadsAndWritesThePlansLanes) {
  Lanes lanes = AllLanes();
  Lane& lane = *lanes.Add();
  lane.set_name("HOST_OPTIMIZER");
  lane.set_kind(Lane::HOST);
  const auto there = ParseInstruction("O u1 @HOST_OPTIMIZER", lanes);
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(there->lane(), AllLanes().size());
  EXPECT_EQ(InstructionLongText(*there, lanes), "O u1 @HOST_OPTIMIZER");
  EXPECT_EQ(InstructionLongText(*there, AllLanes()),
            absl::StrCat("O u1 @lane ", AllLanes().size()));
  EXPECT_FALSE(ParseInstruction("O u1 @HOST_OPTIMIZER").ok());
  lanes[LaneFor(Instruction::STEP)].clear_runs();
  lane.add_runs(Instruction::STEP);
  EXPECT_EQ(ParseInstruction("O u1", lanes)->lane(), there->lane());
  EXPECT_EQ(InstructionLongText(*there, lanes), "O u1");
}

TEST(ProgramText, ProgramsSkipCommentsAndNameTheWrongLine) {
  absl::StatusOr<Program> program =
      ParseProgram("# order\nL m0\n\nF u0 m0 ^0\r\n");
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->instructions_size(), 2);
  EXPECT_EQ(ParseProgram(ProgramText(*program))->SerializeAsString(),
            program->SerializeAsString());
  const absl::Status wrong = ParseProgram("L m0\nF u0 z1\n").status();
  EXPECT_EQ(
      wrong.message(),
      "line 2: instruction word \"z1\": no such field; use u o s q m + v p "
      "g grad % @ ^ =, or an operand");
}

TEST(ProgramText, SaysInWhichSteps) {
  for (const char* const text :
       {"Y u1 g2 %100:25:last", "J u0 %7:0", "Q u3 %0:0:last"}) {
    const auto instruction = ParseInstruction(text);
    ASSERT_TRUE(instruction.ok()) << instruction.status();
    EXPECT_EQ(InstructionText(*instruction), text);
  }
  for (const char* const text : {"J u0 %7", "J u0 %7:x", "J u0 %7:0:first"}) {
    EXPECT_FALSE(ParseInstruction(text).ok()) << text;
  }
}

TEST(ProgramText, RefusesNonsense) {
  for (const char* text : {"", "&", "F u", "F ux", "F u-1", "F u5-3",
                           "F u1-2-3", "F m1 @NOWHERE", "F <1", "F inputs<1",
                           "F input<", "F input<x", "FF", "F u99999999999"}) {
    EXPECT_FALSE(ParseInstruction(text).ok()) << text;
  }
}

}  // namespace
}  // namespace troupe
