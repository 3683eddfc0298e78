// The communicators of a rank: joins the groups of a mesh that it is in, each
// as its plan says.
//
//   ASSIGN_OR_RETURN(auto communicators,
//                    JoinGroups(plan.groups(), MeetingGroups(role),
//                               {.mesh = plan.mesh(), .rank = rank, ...}));
#ifndef TROUPE_WORKER_COLLECTIVE_JOIN_GROUPS_H_
#define TROUPE_WORKER_COLLECTIVE_JOIN_GROUPS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "google/protobuf/repeated_field.h"
#include "ops/device.h"
#include "proto/plan.pb.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"
#include "worker/collective/join_abort.h"
#include "worker/collective/key_value_store.h"

namespace troupe {

// What a rank brings to each of its groups. Borrowed as by a seat
// (communicator_seat.h), which says more.
struct JoiningRank {
  const Mesh& mesh;
  int rank = 0;
  KeyValueStore& store;
  std::string host;
  absl::Duration timeout;  // for all members of a group to come
  JoinAbort* abort = nullptr;
  Device& device;
  // Of the group of that index, carried so; empty: what the device gives.
  std::function<absl::StatusOr<StagingMemory>(int index,
                                              const Group::Carrier& carrier)>
      staging;
};

// By index into `groups`: those of the indices `joined`, in this order, which
// is the same on all ranks; null for others. One watch looks after all.
// REQUIRES that the rank is in each of them. Errors as CreateCommunicator.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> JoinGroups(
    const google::protobuf::RepeatedPtrField<Group>& groups,
    absl::Span<const int> joined, const JoiningRank& rank);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_JOIN_GROUPS_H_
