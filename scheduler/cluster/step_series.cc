#include "scheduler/cluster/step_series.h"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

using Point = StepSeries::Point;
using Range = StepSeries::Range;

// fmin and fmax take the other where one is NaN.
void Widen(Range& range, const Range& by) {
  range.least = std::fmin(range.least, by.least);
  range.most = std::fmax(range.most, by.most);
}

// Nothing where it is not finite, or so large that no float holds it.
Range Of(double value) {
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) return {};
  const auto number = static_cast<float>(value);
  return {number, number};
}

Point PointOf(const StepRecord& step) {
  Point point;
  point.first = point.last = step.step();
  point.values[StepSeries::kLoss] = Of(step.loss());
  point.values[StepSeries::kTokensPerSecond] = Of(step.tokens_per_second());
  point.values[StepSeries::kGradNorm] = Of(step.grad_norm());
  point.values[StepSeries::kLearningRate] = Of(step.learning_rate());
  point.values[StepSeries::kStepSeconds] = Of(step.step_seconds());
  if (step.has_validation_loss()) {
    point.validated = step.step();
    point.validation_loss = Of(step.validation_loss()).least;
  }
  return point;
}

void Join(Point& point, const Point& later) {
  point.last = later.last;
  for (int v = 0; v < StepSeries::kValueCount; ++v) {
    Widen(point.values[v], later.values[v]);
  }
  if (later.validated == 0) return;
  point.validated = later.validated;
  point.validation_loss = later.validation_loss;
}

}  // namespace

bool StepSeries::InLastPoint(int64_t step) const {
  return !points_.empty() &&
         (points_.back().first - 1) / stride_ == (step - 1) / stride_;
}

void StepSeries::Add(const StepRecord& step) {
  while (!points_.empty() && points_.back().first >= step.step()) {
    points_.pop_back();
  }
  const Point point = PointOf(step);
  if (InLastPoint(step.step())) return Join(points_.back(), point);
  while (static_cast<int>(points_.size()) >= kPointsMax) Halve();
  if (InLastPoint(step.step())) return Join(points_.back(), point);
  points_.push_back(point);
}

void StepSeries::Halve() {
  stride_ *= 2;
  std::vector<Point> halved;
  for (const Point& point : points_) {
    if (!halved.empty() &&
        (halved.back().first - 1) / stride_ == (point.first - 1) / stride_) {
      Join(halved.back(), point);
    } else {
      halved.push_back(point);
    }
  }
  points_ = std::move(halved);
}

}  // namespace troupe
