// A job's curves for people to look at: all its steps, in bounded memory
// (thinned.h). A point knows the least and the most of each value among its
// steps.
#ifndef TROUPE_SCHEDULER_CLUSTER_STEP_SERIES_H_
#define TROUPE_SCHEDULER_CLUSTER_STEP_SERIES_H_

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "proto/status.pb.h"
#include "scheduler/cluster/thinned.h"

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

  // As Thinned::Add.
  void Add(const StepRecord& step);

  const std::vector<Point>& points() const { return points_.points(); }
  // How many steps a point stands for, a power of two.
  int64_t stride() const { return points_.stride(); }

 private:
  Thinned<Point> points_{kPointsMax};
};

// Makes of two points one.
void Join(StepSeries::Point& point, const StepSeries::Point& later);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_STEP_SERIES_H_
