#include "proto/plan/program_order.h"

#include <random>

#include "gtest/gtest.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

const int kLanes = AllLanes().size();

TEST(ProgramOrder, LanesAreInOrder) {
  const ProgramOrder order(*ParseProgram("F u0 m0\nR u0 g0\nF u1 m0"), kLanes);
  EXPECT_TRUE(order.Before(0, 2));
  EXPECT_FALSE(order.Before(0, 1));
  EXPECT_FALSE(order.Before(1, 2));
  EXPECT_FALSE(order.Before(2, 0));
  EXPECT_FALSE(order.Before(0, 0));
}

TEST(ProgramOrder, FollowsEdgesThroughOtherLanes) {
  const ProgramOrder order(
      *ParseProgram("L m0\nF u0 m0 ^0\nR u0 g0 ^1\nK u0 ^2"), kLanes);
  EXPECT_TRUE(order.Before(0, 3));
  EXPECT_TRUE(order.Before(1, 3));
}

TEST(ProgramOrder, KeepsOnlyWhatSaysSomethingNew) {
  ProgramOrder order(kLanes);
  EXPECT_TRUE(order.Append(LaneNamed("DATA"), {}).empty());
  EXPECT_EQ(order.Append(LaneNamed("COMPUTE"), {0, 0}), (std::vector<int>{0}));
  EXPECT_TRUE(
      order.Append(LaneNamed("COMPUTE"), {0, 1}).empty());  // its lane says so
  EXPECT_EQ(order.Append(LaneNamed("COLLECTIVE"), {0, 1, 2}),
            (std::vector<int>{2}));
}

// Against the transitive closure, on random programs.
TEST(ProgramOrder, AgreesWithTheClosureAndIsMinimal) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const int size = 2 + static_cast<int>(random() % 14);
    ProgramOrder order(3);
    std::vector<int> lanes;
    std::vector<std::vector<bool>> before(size, std::vector<bool>(size, false));
    for (int i = 0; i < size; ++i) {
      lanes.push_back(static_cast<int>(random() % 3));
      std::vector<int> after;
      for (int j = 0; j < i; ++j) {
        if (random() % 4 == 0) after.push_back(j);
      }
      const auto include = [&](int j) {
        before[i][j] = true;
        for (int k = 0; k < j; ++k) {
          before[i][k] = before[i][k] || before[j][k];
        }
      };
      for (int j = 0; j < i; ++j) {
        if (lanes[j] == lanes[i]) include(j);
      }
      const std::vector<bool> by_lane = before[i];
      for (const int j : after) include(j);
      const std::vector<int> kept = order.Append(lanes[i], after);
      for (const int j : kept) {
        EXPECT_FALSE(by_lane[j]);
        for (const int k : kept) EXPECT_FALSE(before[k][j]) << k << " " << j;
      }
      for (int j = 0; j < i; ++j) EXPECT_EQ(order.Before(j, i), before[i][j]);
    }
  }
}

}  // namespace
}  // namespace troupe
