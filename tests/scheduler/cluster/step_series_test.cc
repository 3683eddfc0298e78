#include "scheduler/cluster/step_series.h"

#include <algorithm>

#include "gtest/gtest.h"

namespace troupe {
namespace {

StepRecord Record(int64_t step, double loss) {
  StepRecord record;
  record.set_step(step);
  record.set_loss(loss);
  record.set_step_seconds(0.5);
  record.set_grad_norm(static_cast<double>(step));
  return record;
}

TEST(StepSeries, AFewStepsAreThereAsTheyAre) {
  StepSeries series;
  for (int step = 1; step <= 100; ++step) {
    StepRecord record = Record(step, 10.0 / step);
    if (step == 50) record.set_validation_loss(0.25);
    series.Add(record);
  }
  EXPECT_EQ(series.stride(), 1);
  ASSERT_EQ(series.points().size(), 100u);
  const StepSeries::Point& point = series.points()[49];
  EXPECT_EQ(point.first, 50);
  EXPECT_EQ(point.last, 50);
  EXPECT_FLOAT_EQ(point.values[StepSeries::kLoss].least, 0.2f);
  EXPECT_FLOAT_EQ(point.values[StepSeries::kLoss].most, 0.2f);
  EXPECT_EQ(point.validated, 50);
  EXPECT_FLOAT_EQ(point.validation_loss, 0.25f);
}

// Whatever the number of steps, no extreme is lost and no step left out.
TEST(StepSeries, AMillionStepsAreAFewPointsWithAllExtremes) {
  StepSeries series;
  constexpr int64_t kSteps = 1'000'000;
  for (int64_t step = 1; step <= kSteps; ++step) {
    const double spike = step == 123'457 ? 1e6 : step == 777'777 ? -5 : 0;
    series.Add(Record(step, 1 + spike));
    ASSERT_LE(series.points().size(), size_t{StepSeries::kPointsMax});
  }
  EXPECT_GT(series.points().size(), StepSeries::kPointsMax / 2 - 2u);
  int64_t next = 1;
  float least = INFINITY, most = -INFINITY;
  for (const StepSeries::Point& point : series.points()) {
    EXPECT_EQ(point.first, next);
    EXPECT_FLOAT_EQ(point.values[StepSeries::kGradNorm].least, point.first);
    EXPECT_FLOAT_EQ(point.values[StepSeries::kGradNorm].most, point.last);
    next = point.last + 1;
    least = std::min(least, point.values[StepSeries::kLoss].least);
    most = std::max(most, point.values[StepSeries::kLoss].most);
  }
  EXPECT_EQ(next, kSteps + 1);
  EXPECT_FLOAT_EQ(least, -4);
  EXPECT_FLOAT_EQ(most, 1e6 + 1);
}

TEST(StepSeries, WhatIsNoNumberIsLeftOut) {
  StepSeries series;
  series.Add(Record(1, NAN));
  EXPECT_TRUE(std::isnan(series.points()[0].values[StepSeries::kLoss].least));
  for (int step = 2; step <= 2000; ++step) {
    series.Add(Record(step, step % 2 == 0 ? INFINITY : 3));
  }
  EXPECT_EQ(series.points()[0].values[StepSeries::kLoss].least, 3);
  EXPECT_EQ(series.points()[0].values[StepSeries::kLoss].most, 3);
  // Sums over many gradients are doubles.
  series.Add(Record(2001, 1e39));
  const StepSeries::Range& last =
      series.points().back().values[StepSeries::kLoss];
  EXPECT_TRUE(std::isnan(last.least)) << last.least;
  EXPECT_TRUE(std::isnan(last.most)) << last.most;
}

TEST(StepSeries, AResumedRunGoesOnWhereItWasSaved) {
  StepSeries series;
  for (int step = 5001; step <= 5100; ++step) series.Add(Record(step, 1));
  series.Add(Record(5051, 2));
  ASSERT_EQ(series.points().size(), 51u);
  EXPECT_EQ(series.points().back().first, 5051);
  EXPECT_EQ(series.points().back().values[StepSeries::kLoss].most, 2);
}

}  // namespace
}  // namespace troupe
