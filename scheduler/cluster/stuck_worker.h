// A worker to be treated as lost.
#ifndef TROUPE_SCHEDULER_CLUSTER_STUCK_WORKER_H_
#define TROUPE_SCHEDULER_CLUSTER_STUCK_WORKER_H_

#include <string>

#include "proto/base/ids.h"

namespace troupe {

struct StuckWorker {
  WorkerId worker;
  std::string reason;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_STUCK_WORKER_H_
