// Tests of what only a GPU has. They skip, and say why, where there is none: a
// SetUp on top of this one goes on only where IsSkipped() is false.
#ifndef TROUPE_TESTS_OPS_CUDA_WITH_GPU_H_
#define TROUPE_TESTS_OPS_CUDA_WITH_GPU_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "ops/cuda/cuda_device.h"

namespace troupe {

class WithGpu : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<CudaDevice>> device = CudaDevice::Create(0);
    if (!device.ok()) GTEST_SKIP() << "no CUDA device: " << device.status();
    device_ = *std::move(device);
  }

  std::unique_ptr<CudaDevice> device_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_OPS_CUDA_WITH_GPU_H_
