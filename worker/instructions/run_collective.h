// What ranks do together with a tensor, by the name that plans have for it.
#ifndef TROUPE_WORKER_INSTRUCTIONS_RUN_COLLECTIVE_H_
#define TROUPE_WORKER_INSTRUCTIONS_RUN_COLLECTIVE_H_

#include "absl/status/status.h"
#include "proto/unit.pb.h"
#include "worker/collective/communicator.h"

namespace troupe {

// `to` alone where it happens in place.
struct CollectiveBuffers {
  CommBuffer from;
  CommBuffer to;
  bool backward = false;  // SHIFT: to the rank before
  int root = 0;           // BROADCAST, REDUCE
};

// Errors as the communicator's.
absl::Status RunCollective(Collective collective,
                           const CollectiveBuffers& buffers,
                           Communicator& communicator,
                           const CommOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_RUN_COLLECTIVE_H_
