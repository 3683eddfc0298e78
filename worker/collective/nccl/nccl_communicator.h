// Communicators between GPUs of different ranks, on NCCL: enqueued ones
// (worker/collective/enqueued), whose members meet over Gloo. Each has its own
// NCCL communicator, so that lanes do not wait for each other.
#ifndef TROUPE_WORKER_COLLECTIVE_NCCL_NCCL_COMMUNICATOR_H_
#define TROUPE_WORKER_COLLECTIVE_NCCL_NCCL_COMMUNICATOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

// REQUIRES that the seat's device is a GPU, of which each member has one of its
// own. Unimplemented in a build without CUDA.
absl::StatusOr<std::unique_ptr<Communicator>> CreateNccl(
    const CommunicatorSeat& seat);

// "2.28.3", of the library that is loaded; empty in a build without CUDA.
std::string NcclVersion();

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_NCCL_NCCL_COMMUNICATOR_H_
