// How often the experts of a job's layers were chosen, over its steps, for
// people to look at. In memory alone: after a restart of the scheduler it begins
// again.
#ifndef TROUPE_SCHEDULER_CLUSTER_EXPERT_LOADS_H_
#define TROUPE_SCHEDULER_CLUSTER_EXPERT_LOADS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "google/protobuf/repeated_field.h"
#include "proto/plan/sums.h"
#include "scheduler/cluster/thinned.h"

namespace troupe {

class ExpertLoads {
 public:
  struct Layer {
    int unit = 0;
    std::vector<float> choices;  // by expert
  };
  // Choices are added up over the steps of a point.
  struct Point {
    int64_t first = 0;  // steps, both included
    int64_t last = 0;
    std::vector<Layer> layers;
  };

  // Points that are kept: kPointsMax, of a model with very many experts as many
  // as have kCellsMax numbers in all, but kPointsMin at least.
  static constexpr size_t kPointsMax = 128;
  static constexpr size_t kPointsMin = 8;
  static constexpr size_t kCellsMax = 1 << 18;

  // The sums of one step (StepReport.sums) as the plan lists them. Nothing
  // where none of them counts choices, or there are not as many.
  static std::optional<Point> PointOf(
      int64_t step, const Sums& sums,
      const google::protobuf::RepeatedField<double>& values);

  // As Thinned::Add. A point with other layers than those before it, of a job
  // that goes on with another plan, may have them in another order.
  void Add(Point point);

  // Ascending; empty before the first.
  const std::vector<Point>& points() const;
  // How many steps a point stands for, a power of two.
  int64_t stride() const;

 private:
  std::optional<Thinned<Point>> points_;
};

// Makes of two points one.
void Join(ExpertLoads::Point& point, const ExpertLoads::Point& later);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_EXPERT_LOADS_H_
