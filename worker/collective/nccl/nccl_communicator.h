// Communicators between GPUs of different ranks, on NCCL, in the stream of the
// calling thread. Each has its own NCCL communicator, so that lanes do not wait
// for each other.
//
// NCCL knows neither deadlines nor names, and hangs where a member does not
// come. So before each operation the members meet on the host, over a Gloo
// communicator of the same group, which tells who is missing, who died, and who
// aborted; only when all have come the operation is enqueued. The meeting takes
// about as long as a round trip of the network; it runs ahead of the GPU, which
// then still computes what is to be reduced. The call returns when the
// operation is done on the device; the thread sleeps. The rank's watch
// (worker/collective/watch.h) looks every 20 ms whether NCCL reports an error
// or the deadline has passed, and then aborts NCCL, so that the thread wakes;
// the members meet once more, to find out whom to blame.
//
// A maximum ignores NaNs, other than in communicator.h: it is NCCL's. And a
// reduce may add up in another order than an all-reduce.
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
