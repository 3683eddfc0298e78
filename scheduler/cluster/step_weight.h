// What a step weighs in Limits::steps_kept_max: one that says the loss of each
// of its sequences, or has a text, takes the memory of several. In memory and
// from the store they are counted alike.
#ifndef TROUPE_SCHEDULER_CLUSTER_STEP_WEIGHT_H_
#define TROUPE_SCHEDULER_CLUSTER_STEP_WEIGHT_H_

#include <cstdint>

#include "proto/status.pb.h"

namespace troupe {

inline int64_t StepWeight(const StepRecord& step) {
  constexpr int64_t kSequencesOfAStep = 32;
  constexpr int64_t kTextBytesOfAStep = 512;
  return 1 + step.sequence_losses().losses_size() / kSequencesOfAStep +
         (static_cast<int64_t>(step.sample().prompt().size()) +
          static_cast<int64_t>(step.sample().text().size())) /
             kTextBytesOfAStep;
}

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_STEP_WEIGHT_H_
