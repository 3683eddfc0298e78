#include "scheduler/cluster/policy/may_recover.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr AttemptEnd kOneLeft = {
    .asks = true, .is_known = true, .restarts = 2, .restarts_max = 3};
constexpr AttemptEnd kNoneLeft = {
    .asks = true, .is_known = true, .restarts = 3, .restarts_max = 3};

TEST(MayRecover, AsLongAsARestartIsLeft) {
  EXPECT_TRUE(MayRecover(kOneLeft));
  EXPECT_FALSE(MayRecover(kNoneLeft));
  EXPECT_FALSE(IsOneLossTooMany(kOneLeft));
  EXPECT_TRUE(IsOneLossTooMany(kNoneLeft));
}

TEST(MayRecover, NotWhereNobodyAsksForIt) {
  AttemptEnd end = kOneLeft;
  end.asks = false;
  EXPECT_FALSE(MayRecover(end));
  EXPECT_FALSE(MayBeginAgain(end));
  EXPECT_FALSE(IsOneLossTooMany(end));
}

TEST(MayRecover, AMoveAndAnUnheardAttemptCostNone) {
  AttemptEnd moves = kNoneLeft;
  moves.moves = true;
  EXPECT_TRUE(MayRecover(moves));
  EXPECT_TRUE(IsOneLossTooMany(moves)) << "a loss meanwhile does";
  AttemptEnd unheard = kNoneLeft;
  unheard.unheard = true;
  EXPECT_TRUE(MayRecover(unheard));
  EXPECT_FALSE(IsOneLossTooMany(unheard));
}

TEST(MayRecover, WhatIsDecidedIsNotAskedAgain) {
  AttemptEnd end = kNoneLeft;
  end.decided = true;
  EXPECT_TRUE(MayRecover(end));
}

TEST(MayRecover, WithoutWhatItsRanksWereHandedItIsPlannedAnew) {
  AttemptEnd end = kOneLeft;
  end.is_known = false;
  EXPECT_FALSE(MayRecover(end));
  EXPECT_TRUE(MayBeginAgain(end));
  end.restarts = end.restarts_max;
  EXPECT_FALSE(MayBeginAgain(end));
}

TEST(IsGivenUp, CountsLossesAndFailuresApart) {
  const FruitlessMax most = {.losses = 10, .failures = 2};
  EXPECT_FALSE(IsGivenUp({.lost = true, .losses = 9, .failures = 2}, most));
  EXPECT_TRUE(IsGivenUp({.lost = true, .losses = 10}, most));
  EXPECT_FALSE(IsGivenUp({.losses = 10, .failures = 1}, most));
  EXPECT_TRUE(IsGivenUp({.failures = 2}, most));
}

TEST(NextPause, DoublesUpToAnHour) {
  EXPECT_EQ(NextPause(absl::Minutes(1)), absl::Minutes(2));
  EXPECT_EQ(NextPause(absl::Minutes(40)), absl::Hours(1));
}

}  // namespace
}  // namespace troupe
