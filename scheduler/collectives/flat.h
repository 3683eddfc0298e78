// One communicator of all members, whose backend chooses how: Gloo's ring in
// the order of the ranks, the phases of shared memory, NCCL's own choice.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_FLAT_H_
#define TROUPE_SCHEDULER_COLLECTIVES_FLAT_H_

#include "absl/status/statusor.h"
#include "scheduler/collectives/row.h"

namespace troupe {

// Of any group and collective.
absl::StatusOr<LaidWay> LayFlat(const GroupExchange& exchange);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_FLAT_H_
