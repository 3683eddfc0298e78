// What ranks do together with a tensor, by the name that plans have for it.
#ifndef TROUPE_WORKER_INSTRUCTIONS_RUN_COLLECTIVE_H_
#define TROUPE_WORKER_INSTRUCTIONS_RUN_COLLECTIVE_H_

#include <vector>

#include "absl/status/status.h"
#include "proto/plan.pb.h"
#include "proto/plan/at_rest.h"
#include "proto/unit.pb.h"
#include "worker/collective/communicator.h"

namespace troupe {

// What each member of the group over which a stretch is dealt has of it, for
// collectives; none: even slices.
std::vector<ElementRange> GivenSlices(const Plan& plan, const Stretch& stretch);

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
