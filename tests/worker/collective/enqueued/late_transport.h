// NCCL's stand-in: operations that run in the queues of a device whose memory
// the host cannot read (tests/ops/split_memory_device.h), when those of all
// members have come up; until then they hold up their queue. Each comes to its
// data through a communicator in process, so its sums are the CPU's.
//
//   auto communicator = CreateLate(seat);     // the seat has such a device
//   auto communicator = CreateLateAndDeaf(seat);
//
// A member that is gone or that aborted is an error, which is noticed while an
// operation waits for it; or not even then, as over NVLink: it waits for ever.
//
// An abort ends its own operations at once, and returns when all that was in
// the device's queues has run, those of other communicators too, as NCCL's may;
// a thread that asks for errors meanwhile waits.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_ENQUEUED_LATE_TRANSPORT_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_ENQUEUED_LATE_TRANSPORT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

// Enqueued communicators over it (enqueued_communicator.h), whose members meet
// in process.
absl::StatusOr<std::unique_ptr<Communicator>> CreateLate(
    const CommunicatorSeat& seat);
absl::StatusOr<std::unique_ptr<Communicator>> CreateLateAndDeaf(
    const CommunicatorSeat& seat);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_ENQUEUED_LATE_TRANSPORT_H_
