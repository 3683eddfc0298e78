#include "ops/cuda/scratch.h"

#include "ops/cuda/cuda_device.h"
#include "ops/cuda/status.h"

namespace troupe {

Scratch::Scratch(CudaDevice& device, size_t bytes) : device_(device) {
  const cudaStream_t stream = device_.stream();
  if (bytes == 0 || device_.failed()) return;
  device_.Check(AllocationStatus(
      cudaMallocFromPoolAsync(&memory_, bytes, device_.scratch_pool(), stream),
      "cudaMallocFromPoolAsync", bytes));
}

Scratch::~Scratch() {
  if (memory_ == nullptr) return;
  device_.Check(cudaFreeAsync(memory_, device_.stream()), "cudaFreeAsync");
}

}  // namespace troupe
