// What stands for nccl_communicator.cc in a build without CUDA.
#include "worker/collective/nccl/nccl_communicator.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<Communicator>> CreateNccl(
    const CommunicatorSeat& seat) {
  return absl::UnimplementedError(
      "this build has no NCCL; build with --config=cuda");
}

std::string NcclVersion() { return ""; }

}  // namespace troupe
