#include "proto/plan/last_step.h"

#include <algorithm>

namespace troupe {

int64_t LastStep(const TrainingSpec& training) {
  if (training.stop_after() == 0) return training.steps();
  return std::min(training.stop_after(), training.steps());
}

}  // namespace troupe
