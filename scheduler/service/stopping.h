// What is answered to those that come, or still wait, while the daemon ends.
#ifndef TROUPE_SCHEDULER_SERVICE_STOPPING_H_
#define TROUPE_SCHEDULER_SERVICE_STOPPING_H_

#include "absl/status/status.h"

namespace troupe {

inline absl::Status SchedulerIsStopping() {
  return absl::UnavailableError("the scheduler is stopping");
}

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_STOPPING_H_
