// How long a pipeline's compute order takes with given times for its stages: an
// estimate's pipeline, bubble and micro-batches in flight. It holds for every
// schedule that there is, as it runs the order that the schedule makes.
#ifndef TROUPE_SCHEDULER_SEARCH_ORDER_TIMES_H_
#define TROUPE_SCHEDULER_SEARCH_ORDER_TIMES_H_

#include <vector>

#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// Seconds of one stage and micro-batch.
struct StageSeconds {
  double forward = 0;
  double backward = 0;  // as one pass
  double input = 0;     // of a pass in two parts
  double weight = 0;
};

struct OrderTimes {
  std::vector<double> begins;  // by rank of the pipeline
  std::vector<double> ends;
  // By stage: of how many micro-batches a rank has gone forward and not
  // backward, at most.
  std::vector<int> in_flight;
};

// `handover`: from a stage to a neighbour on another rank. What waits for
// itself never runs: then ends are infinite. REQUIRES orders of synchronous
// schedules.
OrderTimes TimeOrder(const ComputeOrder& order,
                     const std::vector<StageSeconds>& stages, double handover);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_ORDER_TIMES_H_
