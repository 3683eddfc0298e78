// Which weights does each micro-batch of an asynchronous schedule use? Ages are
// counted from the optimizer step that the micro-batch belongs to: 1 for the
// weights that the step before it made, which is what synchronous training
// uses.
#ifndef TROUPE_TESTS_SCHEDULER_PIPELINES_WEIGHT_AGES_H_
#define TROUPE_TESTS_SCHEDULER_PIPELINES_WEIGHT_AGES_H_

#include <map>
#include <set>
#include <tuple>

#include "scheduler/pipelines/compute_order.h"

namespace troupe {

// Of each rank and micro-batch the ages of the weights that its forward and its
// backward use. In the program of step s the newest weights are of step s - 1;
// a forward that runs `ahead` belongs to step s + ahead.
inline std::map<std::tuple<int, int>, std::set<int>> WeightAges(
    const ComputeOrder& order) {
  std::map<std::tuple<int, int>, std::set<int>> ages;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    for (const ComputeStep& step : order[rank]) {
      ages[{static_cast<int>(rank), step.micro_batch}].insert(
          step.ahead + 1 + step.weight_version);
    }
  }
  return ages;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_PIPELINES_WEIGHT_AGES_H_
