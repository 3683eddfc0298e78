// Communicators between processes of one host, through memory that they share:
// no sockets, no copies by the kernel, no threads of its own. collectives.h
// says what is copied where, phases.h how ranks wait for each other, members.h
// how they find out which are missing, join.h how they meet.
//
// Costs no more than 18 MiB of memory for a group, not for a rank
// (segment_map.h). A dead peer is noticed within 20 ms, one that leaves or
// aborts at once. Beside the errors of communicator.h: Internal, a member
// called another operation, or the same with another size.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SHARED_MEMORY_COMMUNICATOR_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SHARED_MEMORY_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

// FailedPrecondition, at all members alike: not all of them can share memory,
// and why.
absl::StatusOr<std::unique_ptr<Communicator>> CreateSharedMemory(
    const CommunicatorSeat& seat);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_SHARED_MEMORY_COMMUNICATOR_H_
