#include "ops/cuda/status.h"

#include "absl/strings/str_cat.h"

namespace troupe {

absl::Status ToStatus(cudaError_t code, absl::string_view call) {
  if (code == cudaSuccess) return absl::OkStatus();
  const std::string what = absl::StrCat(call, ": ", cudaGetErrorString(code),
                                        " (", cudaGetErrorName(code), ")");
  switch (code) {
    case cudaErrorMemoryAllocation:
      return absl::ResourceExhaustedError(what);
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorNoKernelImageForDevice:
      return absl::FailedPreconditionError(what);
    default:
      return absl::InternalError(what);
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

}  // namespace troupe
