#include "worker/collective/join_groups.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/groups.h"
#include "worker/collective/create_communicator.h"

namespace troupe {

absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> JoinGroups(
    const google::protobuf::RepeatedPtrField<Group>& groups,
    absl::Span<const int> joined, const JoiningRank& rank) {
  std::vector<std::unique_ptr<Communicator>> communicators(groups.size());
  const auto watch = std::make_shared<Watch>();
  for (const int g : joined) {
    const Group& group = groups[g];
    const int number = GroupNumber(rank.mesh, group, rank.rank);
    const std::vector<int> members = MembersOf(rank.mesh, group, rank.rank);
    const auto at = std::find(members.begin(), members.end(), rank.rank);
    CHECK(at != members.end())
        << "rank " << rank.rank << " is not in group " << group.name();
    StagingMemory staging;
    if (rank.staging) {
      ASSIGN_OR_RETURN(staging, rank.staging(g, CarrierOf(group, number)));
    }
    const CommunicatorSeat seat = {
        .group = {.name = GroupName(rank.mesh, group, rank.rank),
                  .ranks = members},
        .rank = static_cast<int>(at - members.begin()),
        .store = &rank.store,
        .host = rank.host,
        .timeout = rank.timeout,
        .abort = rank.abort,
        .device = &rank.device,
        .staging = staging,
        .watch = watch};
    ASSIGN_OR_RETURN(communicators[g], CreateCommunicator(group, number, seat));
  }
  return communicators;
}

}  // namespace troupe
