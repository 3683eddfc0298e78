#include "scheduler/cluster/step_deadline.h"

#include <algorithm>
#include <vector>

namespace troupe {

StepDeadline::StepDeadline(absl::Duration predicted, const Limits& limits)
    : predicted_(predicted),
      min_(limits.late_min),
      first_min_(limits.late_first_min),
      steps_(limits.late_steps) {}

void StepDeadline::Add(absl::Duration step) {
  measured_.push_back(step);
  if (measured_.size() > kStepsKept) measured_.pop_front();
  std::vector<absl::Duration> sorted(measured_.begin(), measured_.end());
  const auto middle = sorted.begin() + sorted.size() / 2;
  std::nth_element(sorted.begin(), middle, sorted.end());
  median_ = *middle;
}

absl::Duration StepDeadline::expected() const {
  return std::max(predicted_, median_);
}

absl::Duration StepDeadline::late_after() const {
  return std::max(measured_.empty() ? first_min_ : min_, steps_ * expected());
}

}  // namespace troupe
