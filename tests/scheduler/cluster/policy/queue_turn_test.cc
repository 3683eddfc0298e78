#include "scheduler/cluster/policy/queue_turn.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr QueueState kTwoOfFourIdle = {.alive = 4, .idle = 2};

TEST(QueueTurn, WhatFitsOnIdleWorkersIsNext) {
  EXPECT_EQ(TurnOf({.ranks = 2}, kTwoOfFourIdle), QueueTurn::kIsNext);
  EXPECT_EQ(TurnOf({.ranks = 3}, kTwoOfFourIdle), QueueTurn::kNeedsIdle);
  EXPECT_EQ(TurnOf({.ranks = 5}, kTwoOfFourIdle), QueueTurn::kNeedsMore);
}

TEST(QueueTurn, AJobThatMayStartWithFewerIsNext) {
  for (const int ranks : {3, 5}) {
    EXPECT_EQ(
        TurnOf({.ranks = ranks, .may_start_narrow = true}, kTwoOfFourIdle),
        QueueTurn::kIsNext);
  }
}

TEST(QueueTurn, OneThatNeedsMoreThanThereAreIsNotHeldBackByOthers) {
  QueueState state = kTwoOfFourIdle;
  state.held_back = true;
  EXPECT_EQ(TurnOf({.ranks = 2}, state), QueueTurn::kIsBehind);
  EXPECT_EQ(TurnOf({.ranks = 5}, state), QueueTurn::kNeedsMore);
}

TEST(QueueTurn, WaitsForADirectoryBeforeItWaitsForWorkers) {
  EXPECT_EQ(TurnOf({.ranks = 3, .shares_directory = true}, kTwoOfFourIdle),
            QueueTurn::kSharesDirectory);
}

TEST(QueueTurn, NothingStartsThatCannotBeStored) {
  QueueState state = kTwoOfFourIdle;
  state.store_is_full = true;
  EXPECT_EQ(TurnOf({.ranks = 2}, state), QueueTurn::kNeedsStore);
  EXPECT_EQ(TurnOf({.ranks = 3}, state), QueueTurn::kNeedsIdle);
}

TEST(QueueTurn, NothingStartsWhileTheSchedulerEnds) {
  QueueState state = kTwoOfFourIdle;
  state.draining = true;
  EXPECT_EQ(TurnOf({.ranks = 1}, state), QueueTurn::kForTheNext);
}

}  // namespace
}  // namespace troupe
