// Statuses of the CUDA libraries' return codes: "cudaMalloc: out of memory
// (cudaErrorMemoryAllocation)".
#ifndef TROUPE_OPS_CUDA_STATUS_H_
#define TROUPE_OPS_CUDA_STATUS_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace troupe {

// `call` is the name of the function that returned the code. Memory that ran
// out is ResourceExhausted, a missing GPU or driver FailedPrecondition,
// anything else Internal.
absl::Status ToStatus(cudaError_t code, absl::string_view call);
absl::Status ToStatus(cublasStatus_t code, absl::string_view call);

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_STATUS_H_
