#include "proto/plan/meeting.h"

#include "gtest/gtest.h"
#include "tests/proto/plan/made_roles.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

// Ranks with the same program, all in group 0; ranks 0 and 1 in group 1.
Plan PlanOf(int ranks, const char* text) {
  Plan plan = PlanOfPlaces(ranks);
  AddGroupOf({0, 1}, "pair", plan);
  for (Role& role : *plan.mutable_roles()) {
    *role.add_programs() = *ParseProgram(text);
    role.mutable_programs(0)->set_kind(Program::TRAIN);
  }
  return plan;
}

using Members = std::vector<RankInstruction>;

class Ranks {
 public:
  explicit Ranks(const Plan& plan)
      : plan_(plan), classes_(plan), meeting_(classes_) {}
  Members Arrive(int rank, int instruction) {
    return meeting_.Arrive({rank, instruction}, At(rank, instruction));
  }
  std::vector<int> MissingFor(int rank, int instruction) const {
    return meeting_.MissingFor(rank, At(rank, instruction));
  }

 private:
  const Instruction& At(int rank, int instruction) const {
    return plan_.roles(rank).programs(0).instructions(instruction);
  }
  const Plan& plan_;
  RankClasses classes_;
  Meeting meeting_;
};

TEST(Meeting, LocalInstructionsRunAtOnce) {
  const Plan plan = PlanOf(2, "F u0 m0");
  Ranks ranks(plan);
  EXPECT_EQ(ranks.Arrive(1, 0), (Members{{1, 0}}));
  EXPECT_TRUE(ranks.MissingFor(1, 0).empty());
}

TEST(Meeting, CollectivesWaitForTheWholeGroup) {
  const Plan plan = PlanOf(3, "R u0 g0\nR u1 g0");
  Ranks ranks(plan);
  EXPECT_TRUE(ranks.Arrive(2, 0).empty());
  EXPECT_EQ(ranks.MissingFor(2, 0), (std::vector<int>{0, 1}));
  EXPECT_TRUE(ranks.Arrive(0, 0).empty());
  EXPECT_EQ(ranks.MissingFor(2, 0), (std::vector<int>{1}));
  EXPECT_EQ(ranks.Arrive(1, 0), (Members{{0, 0}, {1, 0}, {2, 0}}));
  // The next one starts from nothing.
  EXPECT_TRUE(ranks.Arrive(0, 1).empty());
  EXPECT_EQ(ranks.MissingFor(0, 1), (std::vector<int>{1, 2}));
}

TEST(Meeting, GroupsDoNotMix) {
  const Plan plan = PlanOf(3, "R u0 g0\nA g1 @GRADIENTS");
  Ranks ranks(plan);
  EXPECT_TRUE(ranks.Arrive(0, 0).empty());
  EXPECT_TRUE(ranks.Arrive(0, 1).empty());
  EXPECT_EQ(ranks.Arrive(1, 1), (Members{{0, 1}, {1, 1}}));
  EXPECT_EQ(ranks.MissingFor(0, 0), (std::vector<int>{1, 2}));
}

TEST(Meeting, ATransferWaitsForItsPeerOnly) {
  Plan plan = PlanOf(3, "S u0 m0 p1 g0\nV u0 m0 p0 g0");
  Ranks ranks(plan);
  EXPECT_TRUE(ranks.Arrive(0, 0).empty());
  EXPECT_EQ(ranks.MissingFor(0, 0), (std::vector<int>{1}));
  EXPECT_EQ(ranks.Arrive(1, 1), (Members{{0, 0}, {1, 1}}));
}

TEST(Meeting, DirectionsDoNotMix) {
  Plan plan = PlanOf(2, "S u0 m0 p1 g0\nV u0 m0 p1 g0");
  *plan.mutable_roles(1)->mutable_programs(0) =
      *ParseProgram("S u0 m0 p0 g0\nV u0 m0 p0 g0");
  Ranks ranks(plan);
  EXPECT_TRUE(ranks.Arrive(0, 0).empty());
  EXPECT_TRUE(ranks.Arrive(1, 0).empty());
  EXPECT_EQ(ranks.MissingFor(1, 0), (std::vector<int>{0}));
}

}  // namespace
}  // namespace troupe
