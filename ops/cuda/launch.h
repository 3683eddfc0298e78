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

#include <type_traits>

#include "ops/cuda/cuda_device.h"

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

// Of dynamic shared memory a kernel may use this much without asking: there are
// 48 KiB, of which its static shared memory takes its part.
constexpr size_t kSharedBytesUnasked = 32 << 10;

template <typename... Params>
void Launch(CudaDevice& device, void (*kernel)(Params...),
            const LaunchShape& shape, std::type_identity_t<Params>... args) {
  const dim3& grid = shape.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = device.stream();
  if (device.failed()) return;
  const void* symbol = reinterpret_cast<const void*>(kernel);
  cudaError_t code = cudaSuccess;
  device.first_launches().Run(symbol, [&] {
    if (shape.shared_bytes > kSharedBytesUnasked) {
      code = cudaFuncSetAttribute(symbol,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shape.shared_bytes));
    }
    if (code == cudaSuccess) {
      code = cudaLaunchKernelEx(&config, kernel, args...);
    }
  });
  if (code == cudaSuccess) return;
  if (shape.shared_bytes > device.shared_bytes_max()) {
    return device.RefuseSharedBytes(symbol, shape.shared_bytes);
  }
  const char* name = nullptr;
  cudaFuncGetName(&name, symbol);
  device.Check(code, name == nullptr ? "cudaLaunchKernelEx" : name);
}

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_LAUNCH_H_
