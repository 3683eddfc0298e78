#include "worker/collective/nccl/warm_up.h"

#include "proto/base/status.h"

namespace troupe {
namespace {

absl::Status RunEach(Communicator& communicator, const CommBuffer& data,
                     const CommOptions& options) {
  RETURN_IF_ERROR(communicator.AllReduce(data, ReduceOp::kSum, options));
  RETURN_IF_ERROR(communicator.ReduceScatter(data, ReduceOp::kSum, options));
  RETURN_IF_ERROR(communicator.AllGather(data, options));
  return communicator.Broadcast(data, /*root=*/0, options);
}

}  // namespace

absl::Status WarmUp(Communicator& communicator, const WarmUpOptions& options) {
  if (communicator.size() == 1) return absl::OkStatus();
  const int64_t count = communicator.size();
  ASSIGN_OR_RETURN(void* const memory,
                   options.device.Allocate(count * sizeof(float)));
  options.device.Zero(memory, count * sizeof(float));
  const absl::Status status =
      RunEach(communicator, {memory, count, Element::kF32},
              {.name = "the first numbers", .timeout = options.timeout});
  options.device.Free(memory);
  return status;
}

}  // namespace troupe
