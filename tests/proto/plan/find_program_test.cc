#include "proto/plan/find_program.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(FindProgram, ByKind) {
  RankPlan rank;
  rank.add_programs()->set_kind(Program::TRAIN);
  rank.add_programs()->set_kind(Program::CHECKPOINT);
  EXPECT_EQ(FindProgram(rank, Program::CHECKPOINT), &rank.programs(1));
  EXPECT_EQ(FindProgram(rank, Program::VALIDATE), nullptr);
  const RankPlan& same = rank;
  EXPECT_EQ(FindProgram(same, Program::TRAIN), &rank.programs(0));
}

TEST(FindProgram, LoadsDataWhereAnyProgramDoes) {
  RankPlan rank;
  EXPECT_FALSE(LoadsData(rank));
  rank.add_programs()->add_instructions()->set_kind(Instruction::FORWARD);
  rank.add_programs();
  EXPECT_FALSE(LoadsData(rank));
  rank.mutable_programs(1)->add_instructions()->set_kind(
      Instruction::LOAD_BATCH);
  EXPECT_TRUE(LoadsData(rank));
}

}  // namespace
}  // namespace troupe
