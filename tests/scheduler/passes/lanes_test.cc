#include "scheduler/passes/lanes.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Lanes, EveryKindOfInstructionRunsOnOne) {
  const Lanes lanes = AllLanes();
  for (int number = Instruction::Kind_MIN + 1;
       number < Instruction::Kind_ARRAYSIZE; ++number) {
    if (!Instruction::Kind_IsValid(number)) continue;
    const auto kind = static_cast<Instruction::Kind>(number);
    const auto count =
        std::count_if(lanes.begin(), lanes.end(), [kind](const Lane& lane) {
          return std::count(lane.runs().begin(), lane.runs().end(), kind) > 0;
        });
    EXPECT_EQ(count, 1) << Instruction::Kind_Name(kind);
    EXPECT_EQ(LaneFor(kind), UsualLane(lanes, kind));
  }
}

TEST(Lanes, AreFoundByName) {
  const Lanes lanes = AllLanes();
  for (int i = 0; i < lanes.size(); ++i) {
    EXPECT_EQ(LaneNamed(lanes[i].name()), i);
    EXPECT_EQ(NameOfLane(lanes, i), lanes[i].name());
    EXPECT_NE(KindOfLane(lanes, i), Lane::KIND_UNSPECIFIED);
  }
  EXPECT_EQ(FindLane(lanes, "NOWHERE"), -1);
}

TEST(Lanes, WhatIsNotThereHasNoKind) {
  const Lanes lanes = AllLanes();
  for (const int index : {-1, lanes.size()}) {
    EXPECT_EQ(KindOfLane(lanes, index), Lane::KIND_UNSPECIFIED);
  }
  EXPECT_EQ(NameOfLane(lanes, 99), "lane 99");
}

TEST(LanesDeathTest, ANameThatIsNotInTheTableIsOurBug) {
  EXPECT_DEATH(LaneNamed("NOWHERE"), "no lane NOWHERE");
}

}  // namespace
}  // namespace troupe
