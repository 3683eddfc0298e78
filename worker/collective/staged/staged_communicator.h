// Buffers in a device's memory, moved by a communicator of host memory: copied
// out, exchanged, copied back. For ranks that share one GPU, which NCCL does
// not join, and for any device without a backend of its own.
//
// Only what an operation reads is copied out, and only what it writes back:
// a broadcast's root copies nothing back, a reduce-scatter only its own block.
// The host's copy is memory that the device reaches fastest (Device::
// AllocateHost), as large as the largest operation so far; it is kept. Where it
// comes from a budget it is there from the start, as large as the plan says.
#ifndef TROUPE_WORKER_COLLECTIVE_STAGED_STAGED_COMMUNICATOR_H_
#define TROUPE_WORKER_COLLECTIVE_STAGED_STAGED_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

// Errors of operations are those of `host`, of the device, and
// ResourceExhausted where there is no host memory for the copy; here only that
// one. Borrows the device and the arena.
absl::StatusOr<std::unique_ptr<Communicator>> StageThroughHost(
    std::unique_ptr<Communicator> host, Device& device,
    const StagingMemory& memory = {});

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_STAGED_STAGED_COMMUNICATOR_H_
