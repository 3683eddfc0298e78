#include "worker/engine/agreed_stop.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(AgreedStop, IsAfterTheStepThatWasAskedIn) {
  AgreedStop stop(0);
  stop.Heed(1, {.stop = 0, .save = 0});
  EXPECT_FALSE(stop.IsAfter(1));
  // Two ranks at once, one of which wants a checkpoint.
  stop.Heed(2, {.stop = 2, .save = 1});
  EXPECT_TRUE(stop.IsAfter(2));
  EXPECT_TRUE(stop.save());
}

TEST(AgreedStop, IsAfterTheProgramInWhichTheLastRankLearnsOfIt) {
  AgreedStop stop(3);
  stop.Heed(4, {.stop = 1, .save = 0});
  // Too late for ranks that stop when they have learnt of step 4.
  stop.Heed(5, {.stop = 1, .save = 1});
  EXPECT_FALSE(stop.IsAfter(6));
  EXPECT_TRUE(stop.IsAfter(7));
  EXPECT_FALSE(stop.save());
}

}  // namespace
}  // namespace troupe
