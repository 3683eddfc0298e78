#include "worker/engine/agreed_stop.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

Scalars Flags(double stop, double save) {
  Scalars scalars{};
  scalars[kStopFlag] = stop;
  scalars[kSaveFlag] = save;
  return scalars;
}

TEST(AgreedStop, IsAfterTheStepThatWasAskedIn) {
  AgreedStop stop(0);
  stop.Heed(1, Flags(0, 0));
  EXPECT_FALSE(stop.IsAfter(1));
  // Two ranks at once, one of which wants a checkpoint.
  stop.Heed(2, Flags(2, 1));
  EXPECT_TRUE(stop.IsAfter(2));
  EXPECT_TRUE(stop.save());
}

TEST(AgreedStop, IsAfterTheProgramInWhichTheLastRankLearnsOfIt) {
  AgreedStop stop(3);
  stop.Heed(4, Flags(1, 0));
  // Too late for ranks that stop when they have learnt of step 4.
  stop.Heed(5, Flags(1, 1));
  EXPECT_FALSE(stop.IsAfter(6));
  EXPECT_TRUE(stop.IsAfter(7));
  EXPECT_FALSE(stop.save());
}

}  // namespace
}  // namespace troupe
