// What stands for ops/cuda/device.cc in a build without CUDA.
#include "ops/cuda/device.h"

namespace troupe {

bool BuiltWithCuda() { return false; }

absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(
    const CudaDeviceOptions& options) {
  return absl::UnimplementedError(
      "this build has no CUDA; build with --config=cuda");
}

}  // namespace troupe
