// The device as the sources of kernels see it: no more of it than they use.
// What CudaDevice is made of, absl and cuBLAS, nvcc would read three times for
// each of them.
#ifndef TROUPE_OPS_CUDA_KERNEL_DEVICE_H_
#define TROUPE_OPS_CUDA_KERNEL_DEVICE_H_

#include <cuda_runtime_api.h>

#include <cstddef>

#include "ops/cuda/fault.h"

namespace troupe {

class CudaDevice;
class Device;

// The device behind a kernel's first argument.
CudaDevice& CudaOf(Device& device);

// For kernels that read indices.
Fault* FaultOf(CudaDevice& device);

// Enqueues a copy within the device.
void CopyOn(CudaDevice& device, void* to, const void* from, size_t bytes);

// Launches `kernel` on the calling thread's stream, in the config's place, and
// checks it; launch.h says the rest. `arguments` are the addresses of what the
// kernel takes.
void LaunchOn(CudaDevice& device, const void* kernel, cudaLaunchConfig_t config,
              void** arguments);

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_KERNEL_DEVICE_H_
