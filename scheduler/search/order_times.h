// How long a pipeline's compute order takes with given times for its stages: an
// estimate's pipeline, bubble and micro-batches in flight. It holds for every
// schedule that there is, as it runs the order that the schedule makes.
#ifndef TROUPE_SCHEDULER_SEARCH_ORDER_TIMES_H_
#define TROUPE_SCHEDULER_SEARCH_ORDER_TIMES_H_

#include <cstdint>
#include <vector>

#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// Seconds of one stage and micro-batch.
struct StageSeconds {
  double forward = 0;
  double backward = 0;  // as one pass
  double input = 0;     // of a pass in two parts
  double weight = 0;
  bool operator==(const StageSeconds& other) const = default;
};

struct OrderTimes {
  std::vector<double> begins;  // by rank of the pipeline
  std::vector<double> ends;
};

// `handover`: from a stage to a neighbour on another rank. What waits for
// itself never runs: then ends are infinite. REQUIRES orders of synchronous
// schedules.
OrderTimes TimeOrder(const ComputeOrder& order,
                     const std::vector<StageSeconds>& stages, double handover);

// What a micro-batch keeps of a stage.
struct KeptBytes {
  int64_t for_input = 0;   // from its forward to the gradient of its input
  int64_t for_weight = 0;  // from its forward to the gradient of its weights
  // From the first of these gradients to the second, if that is a pass of its
  // own that does not come at once.
  int64_t deferred = 0;
  bool operator==(const KeptBytes& other) const = default;
};

// What the micro-batches in flight of a rank keep at most, and what they keep
// at most while one goes back to its input.
struct MostBytes {
  int64_t ever = 0;
  int64_t going_back = 0;
};
// By rank of the pipeline.
std::vector<MostBytes> MostKept(const ComputeOrder& order,
                                const std::vector<KeptBytes>& of_stage);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_ORDER_TIMES_H_
