#include "proto/plan/find_program.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(FindProgram, ByKind) {
  Role role;
  role.add_programs()->set_kind(Program::TRAIN);
  role.add_programs()->set_kind(Program::CHECKPOINT);
  EXPECT_EQ(FindProgram(role, Program::CHECKPOINT), &role.programs(1));
  EXPECT_EQ(FindProgram(role, Program::VALIDATE), nullptr);
  const Role& same = role;
  EXPECT_EQ(FindProgram(same, Program::TRAIN), &role.programs(0));
}

TEST(FindProgram, LoadsDataWhereAnyProgramDoes) {
  Role role;
  EXPECT_FALSE(LoadsData(role));
  role.add_programs()->add_instructions()->set_kind(Instruction::FORWARD);
  role.add_programs();
  EXPECT_FALSE(LoadsData(role));
  role.mutable_programs(1)->add_instructions()->set_kind(
      Instruction::LOAD_BATCH);
  EXPECT_TRUE(LoadsData(role));
}

}  // namespace
}  // namespace troupe
