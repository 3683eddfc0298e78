#include "proto/plan/last_step.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(LastStep, IsTheSmallerOfTheTwo) {
  TrainingSpec training;
  training.set_steps(20);
  EXPECT_EQ(LastStep(training), 20);
  training.set_stop_after(0);
  EXPECT_EQ(LastStep(training), 20);
  training.set_stop_after(7);
  EXPECT_EQ(LastStep(training), 7);
  training.set_stop_after(20);
  EXPECT_EQ(LastStep(training), 20);
}

}  // namespace
}  // namespace troupe
