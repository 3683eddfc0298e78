// What ranks that decode together do with a tensor, over a communicator.
#ifndef TROUPE_WORKER_ENGINE_PEER_VALUES_H_
#define TROUPE_WORKER_ENGINE_PEER_VALUES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/unit.pb.h"
#include "worker/collective/communicator.h"

namespace troupe {

// REQUIRES a dense tensor of values.
CommBuffer BufferOf(const Tensor& tensor);

// DecodingPeers::Exchange. Errors as the communicator's.
absl::Status ExchangeValues(const Op::Exchange& exchange, const Tensor& x,
                            const Tensor& y, const CommOptions& options,
                            Communicator& communicator);

// Gives a member's numbers to all. `memory` is of the device, and has room for
// them. `outcome` says what became of all that was moved, given what the wait
// for the device has returned.
absl::Status BroadcastNumbers(
    absl::Span<int32_t> numbers, int member, const CommOptions& options,
    void* memory, Device& device, Communicator& communicator,
    absl::FunctionRef<absl::Status(const absl::Status& queue)> outcome);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_PEER_VALUES_H_
