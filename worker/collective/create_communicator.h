// Makes communicators by the name of a backend; create_communicator.cc has the
// table of those that exist. To add one: a folder like gloo/, a row in the
// table, a row in the contract suite.
#ifndef TROUPE_WORKER_COLLECTIVE_CREATE_COMMUNICATOR_H_
#define TROUPE_WORKER_COLLECTIVE_CREATE_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/plan.pb.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

// "in_process", "shared_memory", "gloo", "nccl".
std::vector<std::string> CommunicatorBackends();

// Waits until all members of the group have called it, or until the seat's
// abort, whose reason it returns: a peer that hangs holds nobody. Members that
// turn out not to share memory, where they were said to, all use gloo instead,
// and log why. Where the seat's device has memory of its own, and the backend
// moves that of the host only, buffers are staged through the host (staged/).
// Errors: those of the seat's store; DeadlineExceeded or Unavailable, with the
// missing global rank; InvalidArgument for an unknown backend or an address
// that cannot be bound.
absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(
    const std::string& backend, const CommunicatorSeat& seat);

// Whether what such a carrier moves lies in the memory of the ranks' devices,
// where those have their own: it is staged, or its backend reaches that. Else
// it lies in the host's memory, as copies of the ranks' states do.
bool MovesDeviceMemory(const Group::Carrier& carrier);

// The same as a plan says. REQUIRES the rank's device in the seat, which is
// left out where the carrier moves the host's memory.
absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(
    const Group::Carrier& carrier, CommunicatorSeat seat);

// The same of the group of that number, whose way of carrying out exchanges may
// have levels (levels.h): then this joins the group and, on each level, the
// communicator that the seat's rank is in. All of these have the group's name
// before their own. InvalidArgument, where nothing was joined: levels or ways
// that CheckWays does not take, or that are over a backend of device memory.
absl::StatusOr<std::unique_ptr<Communicator>> CreateCommunicator(
    const Group& group, int number, CommunicatorSeat seat);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_CREATE_COMMUNICATOR_H_
