#include "worker/collective/enqueued/warm_up.h"

#include <utility>

#include "proto/base/status.h"

namespace troupe {
namespace {

// One number to the rank after, and one to the rank before, in a ring, as
// stages of a pipeline and hops of a ring do.
absl::Status MeetNeighbours(Communicator& communicator,
                            const CommBuffer& numbers,
                            const CommOptions& options) {
  const int size = communicator.size();
  const int after = (communicator.rank() + 1) % size;
  const int before = (communicator.rank() + size - 1) % size;
  ShiftBuffers shift = {.send = numbers.Slice(0, 1),
                        .to = after,
                        .receive = numbers.Slice(1, 2),
                        .from = before};
  RETURN_IF_ERROR(communicator.Shift(shift, options));
  std::swap(shift.to, shift.from);
  return communicator.Shift(shift, options);
}

// `other` is as large as `data`.
absl::Status RunEach(Communicator& communicator, const CommBuffer& data,
                     const CommBuffer& other, const CommOptions& options) {
  RETURN_IF_ERROR(communicator.AllReduce(data, ReduceOp::kSum, options));
  const CommBuffer own = communicator.Block(data, communicator.rank());
  RETURN_IF_ERROR(communicator.ReduceScatter({.send = data, .receive = own},
                                             ReduceOp::kSum, options));
  RETURN_IF_ERROR(
      communicator.AllGather({.send = own, .receive = data}, options));
  RETURN_IF_ERROR(
      communicator.AllToAll({.send = data, .receive = other}, options));
  RETURN_IF_ERROR(communicator.Broadcast(data, /*root=*/0, options));
  RETURN_IF_ERROR(
      communicator.Reduce(data, /*root=*/0, ReduceOp::kSum, options));
  return MeetNeighbours(communicator, data, options);
}

}  // namespace

absl::Status WarmUp(Communicator& communicator, const WarmUpOptions& options) {
  if (communicator.size() == 1) return absl::OkStatus();
  const int64_t count = communicator.size();
  const int64_t bytes = 2 * count * sizeof(float);
  ASSIGN_OR_RETURN(void* const memory, options.device.Allocate(bytes));
  options.device.Zero(memory, bytes);
  const CommBuffer numbers = {memory, 2 * count, DType::kF32};
  absl::Status status = RunEach(
      communicator, numbers.Slice(0, count), numbers.Slice(count, 2 * count),
      {.name = "the first numbers", .timeout = options.timeout});
  const absl::Status queue = options.device.Synchronize();
  if (status.ok()) status = communicator.Outcome(queue);
  options.device.Free(memory);
  return status;
}

}  // namespace troupe
