// How the members of a group come to an NCCL communicator.
//
// All connect by Gloo first: a member that does not come is missed there, by
// name. Rank 0 sets "<group>/nccl" to NCCL's id of the group, the others read
// it, and NCCL joins members that are all there.
#ifndef TROUPE_WORKER_COLLECTIVE_NCCL_JOIN_H_
#define TROUPE_WORKER_COLLECTIVE_NCCL_JOIN_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/collective/communicator_seat.h"
#include "worker/collective/enqueued/meeting.h"
#include "worker/collective/nccl/comm.h"

namespace troupe {

struct JoinedNccl {
  std::unique_ptr<HostMeeting> meeting;
  std::unique_ptr<NcclComm> comm;
};

// REQUIRES a group of two or more. Errors name the group.
absl::StatusOr<JoinedNccl> JoinNccl(const CommunicatorSeat& seat);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_NCCL_JOIN_H_
