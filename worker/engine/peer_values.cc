#include "worker/engine/peer_values.h"

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "worker/instructions/run_collective.h"

namespace troupe {
CommBuffer BufferOf(const Tensor& tensor) {
  CHECK(tensor.dense()) << tensor.ShapeString();
  return {.data = tensor.raw(),
          .elements = tensor.elements(),
          .element = tensor.dtype()};
}

absl::Status ExchangeValues(const Op::Exchange& exchange, const Tensor& x,
                            const Tensor& y, const CommOptions& options,
                            Communicator& communicator) {
  const CommBuffer to = BufferOf(y);
  CommBuffer from;
  if (x.raw() != y.raw()) {
    from = BufferOf(x);
    if (exchange.forward() == ALL_GATHER) {
      // Behind its piece a rank may have padding.
      from.elements = communicator.Block(to, communicator.rank()).elements;
    }
  }
  return RunCollective(exchange.forward(), {.from = from, .to = to},
                       communicator, options);
}

absl::Status BroadcastNumbers(
    absl::Span<int32_t> numbers, int member, const CommOptions& options,
    void* memory, Device& device, Communicator& communicator,
    absl::FunctionRef<absl::Status(const absl::Status& queue)> outcome) {
  const size_t bytes = numbers.size() * sizeof(int32_t);
  device.CopyFromHost(memory, numbers.data(), bytes);
  RETURN_IF_ERROR(device.Synchronize());
  RETURN_IF_ERROR(
      communicator.Broadcast({.data = memory,
                              .elements = static_cast<int64_t>(numbers.size()),
                              .element = DType::kI32},
                             member, options));
  device.CopyToHost(numbers.data(), memory, bytes);
  return outcome(device.Synchronize());
}

}  // namespace troupe
