#include "worker/collective/nccl/nccl_communicator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/cuda/cuda_device.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "worker/collective/enqueued/enqueued_communicator.h"
#include "worker/collective/enqueued/warm_up.h"
#include "worker/collective/nccl/join.h"
#include "worker/collective/nccl/nccl_transport.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<Communicator>> CreateNccl(
    const CommunicatorSeat& seat) {
  CHECK(seat.device != nullptr && seat.device->kind() == DeviceKind::kCuda)
      << "group " << seat.group.name << " has no GPU";
  if (seat.group.ranks.size() == 1) return NewEnqueuedCommunicator(seat, {});
  ASSIGN_OR_RETURN(JoinedNccl joined, JoinNccl(seat));
  const NcclSeat place = {.device = CudaDevice::From(*seat.device),
                          .rank = seat.rank,
                          .size = static_cast<int>(seat.group.ranks.size())};
  std::unique_ptr<Communicator> communicator = NewEnqueuedCommunicator(
      seat, {.meeting = std::move(joined.meeting),
             .transport = NewNcclTransport(place, std::move(joined.comm))});
  const JoinAbort::Interrupt interrupt(
      seat.abort, [joining = communicator.get()](const absl::Status& why) {
        joining->Abort(why);
      });
  RETURN_IF_ERROR(
      WarmUp(*communicator, {.device = *seat.device, .timeout = seat.timeout}));
  return communicator;
}

std::string NcclVersion() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return "";
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".",
                      version % 100);
}

}  // namespace troupe
