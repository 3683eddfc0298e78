// How long a step may take before it counts as late: `late_steps` times what it
// should take, `late_min` at least. What it should take is the larger of what
// was predicted and what steps of this attempt took, at the median of the last
// ones, so that a prediction that was too good says it only once. The first
// step of an attempt, which touches all memory and may load and tune kernels,
// has `late_first_min`.
#ifndef TROUPE_SCHEDULER_CLUSTER_STEP_DEADLINE_H_
#define TROUPE_SCHEDULER_CLUSTER_STEP_DEADLINE_H_

#include <deque>

#include "absl/time/time.h"
#include "scheduler/cluster/limits.h"

namespace troupe {

class StepDeadline {
 public:
  StepDeadline(absl::Duration predicted, const Limits& limits);

  // A step of this attempt took so long.
  void Add(absl::Duration step);

  absl::Duration expected() const;
  absl::Duration late_after() const;

  static constexpr int kStepsKept = 31;

 private:
  const absl::Duration predicted_;
  const absl::Duration min_;
  const absl::Duration first_min_;
  const double steps_;
  std::deque<absl::Duration> measured_;  // the last ones
  absl::Duration median_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_STEP_DEADLINE_H_
