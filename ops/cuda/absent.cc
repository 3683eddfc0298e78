// What stands for ops/cuda/device.cc and facts.cc in a build without CUDA.
#include "ops/cuda/device.h"
#include "ops/cuda/facts.h"

namespace troupe {
namespace {

absl::Status NoCuda() {
  return absl::UnimplementedError(
      "this build has no CUDA; build with --config=cuda");
}

}  // namespace

bool BuiltWithCuda() { return false; }

absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(
    const CudaDeviceOptions& options) {
  return NoCuda();
}

absl::StatusOr<GpuFacts> ReadGpuFacts(int ordinal) { return NoCuda(); }

absl::StatusOr<int64_t> FreeGpuBytes(int ordinal) { return NoCuda(); }

}  // namespace troupe
