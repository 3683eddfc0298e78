// What a step weighs in Limits::steps_kept_max: one that says the loss of each
// of its sequences takes the memory of several. In memory and from the store
// they are counted alike.
#ifndef TROUPE_SCHEDULER_CLUSTER_STEP_WEIGHT_H_
#define TROUPE_SCHEDULER_CLUSTER_STEP_WEIGHT_H_

#include <cstdint>

#include "proto/status.pb.h"

namespace troupe {

inline int64_t StepWeight(const StepRecord& step) {
  constexpr int64_t kSequencesOfAStep = 32;
  return 1 + step.sequence_losses().losses_size() / kSequencesOfAStep;
}

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_STEP_WEIGHT_H_
