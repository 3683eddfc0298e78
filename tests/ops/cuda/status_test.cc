#include "ops/cuda/status.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(CudaStatus, NamesTheCallAndTheError) {
  EXPECT_TRUE(ToStatus(cudaSuccess, "cudaMalloc").ok());
  const absl::Status status =
      ToStatus(cudaErrorInvalidValue, "cudaMemcpyAsync");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(),
            "cudaMemcpyAsync: invalid argument (cudaErrorInvalidValue)");
}

TEST(CudaStatus, TellsMissingMemoryAndMissingDevicesFromTheRest) {
  EXPECT_EQ(ToStatus(cudaErrorMemoryAllocation, "cudaMalloc").code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ToStatus(cudaErrorNoDevice, "cudaInitDevice").code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ToStatus(cudaErrorInsufficientDriver, "cudaInitDevice").code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(CudaStatus, OfCublas) {
  EXPECT_TRUE(ToStatus(CUBLAS_STATUS_SUCCESS, "cublasLtMatmul").ok());
  const absl::Status status =
      ToStatus(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("cublasLtMatmul: "), std::string::npos);
  EXPECT_NE(status.message().find("CUBLAS_STATUS_INVALID_VALUE"),
            std::string::npos);
  EXPECT_EQ(ToStatus(CUBLAS_STATUS_ALLOC_FAILED, "cublasLtMatmul").code(),
            absl::StatusCode::kResourceExhausted);
}

// With a GPU it also has how much memory there is.
TEST(CudaStatus, OfAnAllocation) {
  EXPECT_TRUE(AllocationStatus(cudaSuccess, "cudaMalloc", 10).ok());
  const absl::Status none =
      AllocationStatus(cudaErrorMemoryAllocation, "cudaMalloc", 10);
  EXPECT_EQ(none.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(none.message().substr(0, 12), "cudaMalloc: ");
  EXPECT_EQ(AllocationStatus(cudaErrorIllegalAddress, "cudaMalloc", 10).code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace troupe
