// Within hosts, then between them: the members of a host share out the buffer,
// each exchanges its piece with the members at the same place of the other
// hosts, and the pieces come together within the host again. Neighbours of a
// host use what memory they share, and each byte crosses the network as few
// times as hosts allow.
//
// Each host has as many members as the others, at even distances in the group.
// Where that is one each, this is the flat row.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_TWO_LEVEL_H_
#define TROUPE_SCHEDULER_COLLECTIVES_TWO_LEVEL_H_

#include "absl/status/statusor.h"
#include "scheduler/collectives/row.h"

namespace troupe {

absl::StatusOr<LaidWay> LayTwoLevel(const GroupExchange& exchange);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_TWO_LEVEL_H_
