// The levels and steps of two_level, with the buffer cut into pieces so that
// all levels work at once: while a piece crosses the network, the next one is
// shared out within hosts (Cho et al., "BlueConnect: Decomposing All-Reduce for
// Deep Learning on Heterogeneous Network Hierarchy", MLSys 2019). An exchange
// takes about as long as its slowest level, where two_level takes as long as
// all of them together. Each piece pays the latencies of each level once more,
// so that small buffers stay whole.
//
// Each host has as many members as the others, at even distances in the group.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_BLUECONNECT_H_
#define TROUPE_SCHEDULER_COLLECTIVES_BLUECONNECT_H_

#include "absl/status/statusor.h"
#include "scheduler/collectives/row.h"

namespace troupe {

absl::StatusOr<LaidWay> LayBlueConnect(const GroupExchange& exchange);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_BLUECONNECT_H_
