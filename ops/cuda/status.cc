#include "ops/cuda/status.h"

#include "absl/strings/str_cat.h"
#include "proto/base/local_cause.h"

namespace troupe {

absl::Status ToStatus(cudaError_t code, absl::string_view call) {
  if (code == cudaSuccess) return absl::OkStatus();
  const std::string what = absl::StrCat(call, ": ", cudaGetErrorString(code),
                                        " (", cudaGetErrorName(code), ")");
  switch (code) {
    case cudaErrorMemoryAllocation:
      return OfThisMachine(absl::ResourceExhaustedError(what));
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorNoKernelImageForDevice:
      return OfThisMachine(absl::FailedPreconditionError(what));
    default:
      return OfThisMachine(absl::InternalError(what));
  }
}

absl::Status ToStatus(cublasStatus_t code, absl::string_view call) {
  if (code == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string what =
      absl::StrCat(call, ": ", cublasLtGetStatusString(code), " (",
                   cublasLtGetStatusName(code), ")");
  return code == CUBLAS_STATUS_ALLOC_FAILED ? absl::ResourceExhaustedError(what)
                                            : absl::InternalError(what);
}

absl::Status AllocationStatus(cudaError_t code, absl::string_view call,
                              size_t bytes) {
  if (code == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // it is told here, and not once more by a later call
  int ordinal = 0;
  size_t free = 0, total = 0;
  if (code != cudaErrorMemoryAllocation ||
      cudaGetDevice(&ordinal) != cudaSuccess ||
      cudaMemGetInfo(&free, &total) != cudaSuccess) {
    return ToStatus(code, call);
  }
  return OfThisMachine(absl::ResourceExhaustedError(absl::StrCat(
      call, ": no memory for ", bytes, " bytes on cuda:", ordinal, ": ", free,
      " of ", total,
      " bytes are free; lower the worker's --device-memory or the job's "
      "training.micro_batch_size, or end what else uses the GPU")));
}

}  // namespace troupe
