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

}  // namespace

void Join(StepSeries::Point& point, const StepSeries::Point& later) {
  point.last = later.last;
  for (int v = 0; v < StepSeries::kValueCount; ++v) {
    Widen(point.values[v], later.values[v]);
  }
  if (later.validated == 0) return;
  point.validated = later.validated;
  point.validation_loss = later.validation_loss;
}

void StepSeries::Add(const StepRecord& step) { points_.Add(PointOf(step)); }

}  // namespace troupe
