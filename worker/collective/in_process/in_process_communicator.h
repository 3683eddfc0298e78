// Ranks that are threads of one process: tests, and the whole of a small job in
// one debugger. Reductions go through the ranks' own buffers, in the order of
// the ranks, so that a run repeats itself to the bit.
//
// All-reduce: rank r reduces block r from all buffers, then all copy the blocks
// of the others: each rank reads (N - 1) / N of the buffer twice, as the ring
// does, but without a step for each rank.
#ifndef TROUPE_WORKER_COLLECTIVE_IN_PROCESS_IN_PROCESS_COMMUNICATOR_H_
#define TROUPE_WORKER_COLLECTIVE_IN_PROCESS_IN_PROCESS_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

// The members share a board through their store, which is one object:
// FailedPrecondition where it is one for processes.
absl::StatusOr<std::unique_ptr<Communicator>> CreateInProcess(
    const CommunicatorSeat& seat);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_IN_PROCESS_IN_PROCESS_COMMUNICATOR_H_
