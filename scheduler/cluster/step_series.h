// A job's curves for people to look at: all its steps, from the first on, in
// bounded memory. Steps that lie side by side share a point, which knows the
// least and the most of each value among them; when there are too many points,
// neighbours become one and each stands for twice as many steps.
#ifndef TROUPE_SCHEDULER_CLUSTER_STEP_SERIES_H_
#define TROUPE_SCHEDULER_CLUSTER_STEP_SERIES_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "proto/status.pb.h"

namespace troupe {

class StepSeries {
 public:
  enum Value {
    kLoss,
    kTokensPerSecond,
    kGradNorm,
    kLearningRate,
    kStepSeconds,
    kValueCount
  };
  // NaN where no step had a number.
  struct Range {
    float least = NAN;
    float most = NAN;
  };
  struct Point {
    int64_t first = 0;  // steps, both included
    int64_t last = 0;
    std::array<Range, kValueCount> values;
    int64_t validated = 0;  // the last step with a validation; 0: none
    float validation_loss = NAN;
  };

  static constexpr int kPointsMax = 512;

  // Steps come in ascending order. One that does not takes the place of those
  // from there on: a run was resumed from before them.
  void Add(const StepRecord& step);

  const std::vector<Point>& points() const { return points_; }
  // So many steps a point stands for, a power of two.
  int64_t stride() const { return stride_; }

 private:
  bool InLastPoint(int64_t step) const;
  void Halve();

  int64_t stride_ = 1;
  std::vector<Point> points_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_STEP_SERIES_H_
