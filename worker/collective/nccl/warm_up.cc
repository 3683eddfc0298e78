#include "worker/collective/nccl/warm_up.h"

#include "proto/base/status.h"

namespace troupe {
namespace {

// One number from rank `from` to the next one, and back.
absl::Status Exchange(Communicator& communicator, int from,
                      const CommBuffer& number, const CommOptions& options) {
  const int next = (from + 1) % communicator.size();
  if (communicator.rank() == from) {
    RETURN_IF_ERROR(communicator.Send(number, next, options));
    return communicator.Recv(number, next, options);
  }
  RETURN_IF_ERROR(communicator.Recv(number, from, options));
  return communicator.Send(number, from, options);
}

// Each with the rank after it and the rank before it, in a ring, as stages of a
// pipeline do. Even ranks begin with the one after: pairs meet side by side.
absl::Status MeetNeighbours(Communicator& communicator,
                            const CommBuffer& number,
                            const CommOptions& options) {
  const int rank = communicator.rank();
  const int before = (rank + communicator.size() - 1) % communicator.size();
  const bool even = rank % 2 == 0;
  RETURN_IF_ERROR(
      Exchange(communicator, even ? rank : before, number, options));
  return Exchange(communicator, even ? before : rank, number, options);
}

absl::Status RunEach(Communicator& communicator, const CommBuffer& data,
                     const CommOptions& options) {
  RETURN_IF_ERROR(communicator.AllReduce(data, ReduceOp::kSum, options));
  const CommBuffer own = communicator.Block(data, communicator.rank());
  RETURN_IF_ERROR(communicator.ReduceScatter({.send = data, .receive = own},
                                             ReduceOp::kSum, options));
  RETURN_IF_ERROR(
      communicator.AllGather({.send = own, .receive = data}, options));
  RETURN_IF_ERROR(communicator.Broadcast(data, /*root=*/0, options));
  return MeetNeighbours(communicator, data.Slice(0, 1), options);
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
