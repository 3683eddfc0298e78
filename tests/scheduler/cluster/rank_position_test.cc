#include "scheduler/cluster/rank_position.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/made_up_progress.h"

namespace troupe {
namespace {

TEST(PositionOf, GoesFromProgramToProgramAndFromStepToStep) {
  const std::vector<RankProgress> in_order = {
      Doing(0, Program::FILL),       Doing(0, Program::KIND_UNSPECIFIED),
      Doing(1, Program::TRAIN),      Doing(1, Program::VALIDATE),
      Doing(1, Program::CHECKPOINT), Doing(1, Program::KIND_UNSPECIFIED),
      Doing(2, Program::TRAIN),      Doing(3, Program::REPORT)};
  for (size_t i = 1; i < in_order.size(); ++i) {
    EXPECT_LT(PositionOf(in_order[i - 1]), PositionOf(in_order[i])) << i;
  }
}

Instruction::Kind BlockingKind(const RankProgress& progress) {
  const LaneProgress* lane = Blocking(progress, AllLanes());
  return lane == nullptr ? Instruction::KIND_UNSPECIFIED
                         : lane->current().kind();
}

TEST(Blocking, IsWhatRunsAtTheEndOfTheWaitsOnTheRank) {
  const Instruction forward = Forward(7, 3);
  EXPECT_EQ(
      BlockingKind(
          Doing(1).Runs(forward, 1).Runs(Recv(7, 4, 0), 5).Runs(Load(4), 6)),
      Instruction::FORWARD);
  // It waits for the second RECV of a lane that is in the first.
  EXPECT_EQ(BlockingKind(Doing(1)
                             .Waits(forward, Recv(7, 3, 0))
                             .Runs(Load(4), 6)
                             .Runs(Recv(7, 2, 0), 5)),
            Instruction::RECV);
  EXPECT_EQ(BlockingKind(Doing(1)
                             .Waits(forward, Recv(7, 3, 0))
                             .Waits(Recv(7, 3, 0), Reduce(7, 0))
                             .Runs(Reduce(7, 0), 1)),
            Instruction::REDUCE_GRADS);
  // All is computed.
  EXPECT_EQ(BlockingKind(Doing(1).Runs(Reduce(7, 0), 1)),
            Instruction::REDUCE_GRADS);
}

TEST(Blocking, IsNothingWhereNothingRuns) {
  const Lanes lanes = AllLanes();
  EXPECT_EQ(Blocking(Doing(1), lanes), nullptr);
  EXPECT_EQ(Blocking(Doing(1, Program::KIND_UNSPECIFIED), lanes), nullptr);
  // No worker says that, unless it is broken.
  EXPECT_EQ(Blocking(Doing(1)
                         .Waits(Forward(1, 0), Reduce(1, 0))
                         .Waits(Reduce(1, 0), Forward(1, 0)),
                     lanes),
            nullptr);
  EXPECT_EQ(Blocking(Doing(1).Waits(Forward(1, 0), Reduce(1, 0)), lanes),
            nullptr);
  EXPECT_EQ(Blocking(Doing(1)
                         .Waits(Forward(1, 0), On(99, Instruction::STEP, 1))
                         .Waits(On(-1, Instruction::STEP, 1), Forward(1, 0)),
                     lanes),
            nullptr);
}

TEST(HasComeTo, ACollectiveIsTheSameInstructionOfTheSameStep) {
  const Instruction here = Reduce(2, 0);
  const MeetingPoint point = {.instruction = here,
                              .pipeline_place = 0,
                              .position = PositionOf(Doing(5))};
  EXPECT_TRUE(HasComeTo(point, Doing(5).Runs(Reduce(2, 0), 1)));
  EXPECT_FALSE(HasComeTo(point, Doing(5).Waits(Reduce(2, 0), Forward(2, 0))));
  EXPECT_FALSE(HasComeTo(point, Doing(5).Runs(Reduce(4, 0), 1)));
  EXPECT_FALSE(HasComeTo(point, Doing(5).Runs(Reduce(2, 1), 1)));
  EXPECT_TRUE(
      HasComeTo(point, Doing(5).Runs(Reduce(0, 0), 1).After(Reduce(2, 0))));
  EXPECT_TRUE(HasComeTo(point, Doing(5).Runs(Forward(2, 0), 1)))
      << "its lane has nothing left to do";
  EXPECT_FALSE(HasComeTo(point, Doing(4).Runs(Reduce(2, 0), 1)));
  EXPECT_TRUE(HasComeTo(point, Doing(6).Runs(Forward(0, 0), 1)));
  EXPECT_TRUE(HasComeTo(point, Doing(5, Program::VALIDATE)));
  EXPECT_FALSE(HasComeTo(point, Doing(4, Program::CHECKPOINT)));
}

TEST(HasComeTo, ATransferIsItsCounterpartWithThisRank) {
  const Instruction here = Recv(7, 3, 4);
  const MeetingPoint point = {.instruction = here,
                              .pipeline_place = 5,
                              .position = PositionOf(Doing(9))};
  EXPECT_TRUE(HasComeTo(point, Doing(9).Runs(Send(7, 3, 5), 1)));
  EXPECT_FALSE(HasComeTo(point, Doing(9).Runs(Recv(7, 3, 5), 1)));
  EXPECT_FALSE(HasComeTo(point, Doing(9).Runs(Send(7, 3, 6), 1)));
  EXPECT_FALSE(HasComeTo(point, Doing(9).Runs(Send(7, 2, 5), 1)));
  EXPECT_FALSE(HasComeTo(point, Doing(9).Waits(Send(7, 3, 5), Forward(7, 3))));
  EXPECT_TRUE(
      HasComeTo(point, Doing(9).Runs(Send(7, 4, 5), 1).After(Send(7, 3, 5))));
}

TEST(InstructionName, SaysKindUnitsAndMicroBatch) {
  EXPECT_EQ(InstructionName(Forward(6, 3)), "FORWARD u6 m3");
  EXPECT_EQ(InstructionName(Reduce(2, 0)), "REDUCE_GRADS u2-3");
  EXPECT_EQ(InstructionName(Load(4)), "LOAD_BATCH m4");
  Instruction scalars;
  scalars.set_kind(Instruction::REDUCE_SCALARS);
  EXPECT_EQ(InstructionName(scalars), "REDUCE_SCALARS");
}

}  // namespace
}  // namespace troupe
