// Statuses of the CUDA libraries' return codes: "cudaMalloc: out of memory
// (cudaErrorMemoryAllocation)".
#ifndef TROUPE_OPS_CUDA_STATUS_H_
#define TROUPE_OPS_CUDA_STATUS_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe {

// `call` is the name of the function that returned the code. Memory that ran
// out is ResourceExhausted, a missing GPU or driver FailedPrecondition,
// anything else Internal.
absl::Status ToStatus(cudaError_t code, absl::string_view call);
absl::Status ToStatus(cublasStatus_t code, absl::string_view call);

// Of a call that was to give `bytes` of the current device's memory. Where
// there is no room for them, the message has how much is free and what to do.
absl::Status AllocationStatus(cudaError_t code, absl::string_view call,
                              size_t bytes);

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_STATUS_H_
