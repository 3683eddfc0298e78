#include "proto/plan/check_waits.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/proto/plan/made_roles.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A TRAIN program for each rank; all are in group 0.
Plan PlanOf(const std::vector<std::string>& programs) {
  Plan plan = PlanOfPlaces(static_cast<int>(programs.size()));
  for (size_t r = 0; r < programs.size(); ++r) {
    Program& program = *plan.mutable_roles(r)->add_programs();
    program = *ParseProgram(programs[r]);
    program.set_kind(Program::TRAIN);
  }
  return plan;
}

std::string Message(const Plan& plan) {
  const absl::Status status = CheckWaits(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  return std::string(status.message());
}

TEST(CheckWaits, AcceptsTheSameOrder) {
  const std::string text = "F u0 m0\nR u1 g0 ^0\nR u0 g0\nA g0 ^2";
  EXPECT_TRUE(CheckWaits(PlanOf({text, text, text})).ok());
}

TEST(CheckWaits, NamesCollectivesInAnotherOrder) {
  const Plan plan = PlanOf({"R u1 g0\nR u0 g0", "R u0 g0\nR u1 g0"});
  EXPECT_EQ(Message(plan),
            "rank 0, TRAIN: collective 0 of group all is R u1 g0, but "
            "R u0 g0 on rank 1");
}

TEST(CheckWaits, NamesAMissingCollective) {
  EXPECT_EQ(Message(PlanOf({"R u0 g0\nA g0", "R u0 g0"})),
            "rank 0, TRAIN: collective 1 of group all is A g0, but nothing "
            "on rank 1");
  EXPECT_THAT(Message(PlanOf({"", "R u0 g0"})),
              AllOf(HasSubstr("rank 1"), HasSubstr("nothing on rank 0")));
}

// A rank that joins a group waits for all of it.
TEST(CheckWaits, NamesAMemberThatDoesNotJoin) {
  EXPECT_EQ(Message(PlanOf({"S u0 m0 p1 g0", "V u0 m0 p0 g0", ""})),
            "rank 0 waits for all of group all to join it, and rank 2 does "
            "nothing in it");
}

TEST(CheckWaits, DifferentBucketsAreDifferent) {
  EXPECT_THAT(Message(PlanOf({"R u0-1 g0", "R u0 g0"})),
              HasSubstr("is R u0-1 g0, but R u0 g0 on rank 1"));
}

// Each lane is in the same order on both ranks, and yet neither can go on.
TEST(CheckWaits, NamesAWaitCycle) {
  const Plan plan =
      PlanOf({"R u0 g0\nA g0 @GRADIENTS ^0", "A g0 @GRADIENTS\nR u0 g0 ^0"});
  EXPECT_EQ(Message(plan),
            "rank 0, TRAIN: never ends: rank 0 waits in R u0 g0 (COLLECTIVE "
            "lane) for rank 1; rank 1 waits in A g0 (GRADIENTS "
            "lane) for rank 0");
}

TEST(CheckWaits, FollowsAWaitCycleThroughThreeRanks) {
  Plan plan =
      PlanOf({"R u0 g1\nR u2 g3 @GRADIENTS ^0", "R u1 g2\nR u0 g1 @COLLECTIVE",
              "R u2 g3 @GRADIENTS\nR u1 g2 ^0"});
  AddGroupOf({0, 1}, "a", plan);
  AddGroupOf({1, 2}, "b", plan);
  AddGroupOf({0, 2}, "c", plan);
  const std::string message = Message(plan);
  EXPECT_THAT(message, HasSubstr("rank 0 waits in R u0 g1"));
  EXPECT_THAT(message, HasSubstr("rank 1 waits in R u1 g2"));
  EXPECT_THAT(message, HasSubstr("rank 2 waits in R u2 g3"));
}

}  // namespace
}  // namespace troupe
