// The one door through which kernels are launched: on the calling thread's
// stream, with the launch checked.
//
//   Launch(cuda, GeluKernel<float>, {.grid = blocks, .block = 256}, x, y, n);
//
// Arguments are converted to the kernel's parameter types. A grid of no blocks
// is no launch, and nothing is launched on a device that has failed.
#ifndef TROUPE_OPS_CUDA_LAUNCH_H_
#define TROUPE_OPS_CUDA_LAUNCH_H_

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "ops/cuda/kernel_device.h"

namespace troupe {

struct LaunchShape {
  dim3 grid{1};
  dim3 block{1};
  size_t shared_bytes = 0;  // of the kernel's dynamic shared memory
};

// Of a kernel each of whose threads has `per_thread` elements, one thread after
// the other; FlatBegin (elements.h) says where they begin.
inline LaunchShape FlatShape(int64_t count, int per_thread) {
  constexpr int kThreads = 256;
  const int64_t per_block = int64_t{kThreads} * per_thread;
  return {
      .grid = dim3(static_cast<unsigned>((count + per_block - 1) / per_block)),
      .block = dim3(kThreads)};
}

template <typename... Params>
void Launch(CudaDevice& device, void (*kernel)(Params...),
            const LaunchShape& shape, std::type_identity_t<Params>... args) {
  const dim3& grid = shape.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  void* arguments[] = {&args...};
  LaunchOn(device, reinterpret_cast<const void*>(kernel), config, arguments);
}

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_LAUNCH_H_
