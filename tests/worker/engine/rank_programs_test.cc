#include "worker/engine/rank_programs.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(RankPrograms, AreFoundByWhatTheyAreFor) {
  Role rank;
  rank.add_programs()->set_kind(Program::CHECKPOINT);
  rank.add_programs()->set_kind(Program::TRAIN);
  rank.add_programs()->set_kind(Program::FILL);
  rank.add_programs()->set_kind(Program::REPORT);
  Derived derived;
  derived.set_report_lag(2);
  const RankPrograms programs = ProgramsOf(rank, derived);
  EXPECT_EQ(programs.step, &rank.programs(1));
  EXPECT_EQ(programs.validate, nullptr);
  EXPECT_EQ(programs.checkpoint, &rank.programs(0));
  EXPECT_EQ(programs.fill, &rank.programs(2));
  EXPECT_EQ(programs.report, &rank.programs(3));
}

TEST(RankProgramsDeathTest, APlanMustTrainAndReport) {
  Role rank;
  Derived derived;
  EXPECT_DEATH(ProgramsOf(rank, derived), "without a program of a step");
  rank.add_programs()->set_kind(Program::TRAIN);
  derived.set_report_lag(1);
  EXPECT_DEATH(ProgramsOf(rank, derived), "without a REPORT program");
}

}  // namespace
}  // namespace troupe
