#include "worker/rank/loss_scale.h"

#include <cmath>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TrainingSpec Fp16() {
  TrainingSpec training;
  training.set_precision("fp16");
  return training;
}

TEST(LossScale, StartsAndMovesAsTheFieldsDoes) {
  LossScale scale(Fp16());
  EXPECT_EQ(scale.factor(), 65536);
  scale.Update(INFINITY);
  scale.Update(NAN);
  EXPECT_EQ(scale.factor(), 16384);
  EXPECT_EQ(scale.state().skipped_steps, 2);
  for (int step = 1; step < 2000; ++step) scale.Update(1);
  EXPECT_EQ(scale.factor(), 16384);
  scale.Update(1);
  EXPECT_EQ(scale.factor(), 32768);
  EXPECT_EQ(scale.state().good_steps, 0);
  // An overflow begins the count anew.
  for (int step = 1; step < 2000; ++step) scale.Update(1);
  scale.Update(INFINITY);
  EXPECT_EQ(scale.factor(), 16384);
  for (int step = 1; step < 2000; ++step) scale.Update(1);
  EXPECT_EQ(scale.factor(), 16384);
}

TEST(LossScale, GoesOnWhereACheckpointLeftIt) {
  LossScale whole(Fp16());
  const auto norm = [](int step) { return step % 700 == 5 ? NAN : 2.0; };
  for (int step = 0; step < 5000; ++step) {
    whole = LossScale(Fp16(), whole.state());
    whole.Update(norm(step));
  }
  LossScale again(Fp16());
  for (int step = 0; step < 5000; ++step) again.Update(norm(step));
  EXPECT_EQ(again.factor(), whole.factor());
  EXPECT_EQ(again.state().good_steps, whole.state().good_steps);
  EXPECT_EQ(again.state().skipped_steps, 8);
}

TEST(LossScale, OfANumberStaysThat) {
  TrainingSpec training = Fp16();
  training.set_loss_scale(100);
  LossScale scale(training, {.scale = 8, .good_steps = 1, .skipped_steps = 3});
  scale.Update(INFINITY);
  EXPECT_EQ(scale.factor(), 100);
  EXPECT_EQ(scale.state().skipped_steps, 4);
}

// A fixed one counts good steps without an end; a job that finds one begins
// there.
TEST(LossScale, GrowsBehindALongRunOfAFixedOne) {
  TrainingSpec training = Fp16();
  training.set_loss_scale(8);
  LossScale fixed(training);
  for (int step = 0; step < 2500; ++step) fixed.Update(1);
  LossScale found(Fp16(), fixed.state());
  EXPECT_EQ(found.factor(), 8);
  found.Update(1);
  EXPECT_EQ(found.factor(), 16);
}

TEST(LossScale, OtherPrecisionsKeepWhatTheyFind) {
  TrainingSpec training;
  training.set_precision("bf16");
  LossScale scale(training, {.scale = 8, .good_steps = 1, .skipped_steps = 3});
  scale.Update(INFINITY);
  EXPECT_EQ(scale.factor(), 1);
  EXPECT_EQ(scale.state().scale, 8);
  EXPECT_EQ(scale.state().good_steps, 1);
  EXPECT_EQ(scale.state().skipped_steps, 3);
}

// What is divided by it must not become infinite.
TEST(LossScale, HasAnUpperEnd) {
  LossScale scale(Fp16(), {.scale = 0x1p100, .good_steps = 1999});
  scale.Update(0);
  EXPECT_EQ(scale.factor(), 0x1p100);
}

}  // namespace
}  // namespace troupe
