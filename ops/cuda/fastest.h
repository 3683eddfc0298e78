// Which of several ways to do the same work on a GPU takes the least time, by
// the GPU's clock: each is enqueued some times, in turn with the others, so
// that what slows the GPU down for a while slows down all.
#ifndef TROUPE_OPS_CUDA_FASTEST_H_
#define TROUPE_OPS_CUDA_FASTEST_H_

#include <cuda_runtime_api.h>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace troupe::cuda {

// The first of `ways` that takes at most a fiftieth longer than the fastest;
// nothing where none can. enqueue(way) puts the work of one into the stream, or
// returns false where that way cannot do it. Waits for the stream, with all
// that is in it already.
absl::StatusOr<absl::optional<int>> FastestOf(
    int ways, cudaStream_t stream,
    absl::FunctionRef<absl::StatusOr<bool>(int)> enqueue);

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_FASTEST_H_
