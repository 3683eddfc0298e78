#include "worker/collective/nccl/join.h"

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "worker/collective/gloo/gloo_communicator.h"

namespace troupe {
namespace {

absl::StatusOr<ncclUniqueId> AgreeOnId(const CommunicatorSeat& seat,
                                       absl::Time deadline) {
  const std::string key = absl::StrCat(seat.group.name, "/nccl");
  ncclUniqueId id;
  if (seat.rank == 0) {
    RETURN_IF_ERROR(ToStatus(ncclGetUniqueId(&id), "ncclGetUniqueId"));
    RETURN_IF_ERROR(seat.store->Set(
        key, absl::BytesToHexString({id.internal, sizeof(id.internal)})));
    return id;
  }
  ASSIGN_OR_RETURN(const std::string hex,
                   seat.store->Get(key, deadline - SteadyNow()));
  const std::string bytes = absl::HexStringToBytes(hex);
  if (bytes.size() != sizeof(id.internal)) {
    return absl::InternalError(absl::StrCat("rank ", seat.group.ranks[0],
                                            " has another version of NCCL"));
  }
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

absl::StatusOr<std::unique_ptr<NcclComm>> Connect(const CommunicatorSeat& seat,
                                                  absl::Time deadline) {
  CudaDevice& device = CudaDevice::From(*seat.device);
  if (!device.MakeCurrent()) return device.status();
  ASSIGN_OR_RETURN(const ncclUniqueId id, AgreeOnId(seat, deadline));
  return NcclComm::Create(device,
                          {.id = id,
                           .rank = seat.rank,
                           .size = static_cast<int>(seat.group.ranks.size()),
                           .abort = seat.abort},
                          deadline);
}

}  // namespace

absl::StatusOr<JoinedNccl> JoinNccl(const CommunicatorSeat& seat) {
  const absl::Time deadline = SteadyNow() + seat.timeout;
  ASSIGN_OR_RETURN(std::unique_ptr<Communicator> host, CreateGloo(seat));
  absl::StatusOr<std::unique_ptr<NcclComm>> comm = Connect(seat, deadline);
  if (!comm.ok()) {
    return Annotate(comm.status(),
                    absl::StrCat("group ", seat.group.name, ": join"));
  }
  return JoinedNccl{std::make_unique<HostMeeting>(std::move(host)),
                    *std::move(comm)};
}

}  // namespace troupe
