// The device as the sources of kernels see it: no more of it than they use.
// What CudaDevice is made of, absl and cuBLAS, nvcc would read three times for
// each of them.
#ifndef TROUPE_OPS_CUDA_KERNEL_DEVICE_H_
#define TROUPE_OPS_CUDA_KERNEL_DEVICE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "ops/cuda/fault.h"

namespace troupe {

class CudaDevice;
class Device;

// The device behind a kernel's first argument.
CudaDevice& CudaOf(Device& device);

// Whether an op is asked to stay within documents (ops/documents.h), which no
// kernel here does: then the device fails, saying so.
bool RefusesDocuments(Device& device, bool asked);

// For kernels that read indices.
Fault* FaultOf(CudaDevice& device);

// Enqueues a copy within the device.
void CopyOn(CudaDevice& device, void* to, const void* from, size_t bytes);

// Launches `kernel` on the calling thread's stream, in the config's place, and
// checks it; launch.h says the rest. `arguments` are the addresses of what the
// kernel takes.
void LaunchOn(CudaDevice& device, const void* kernel, cudaLaunchConfig_t config,
              void** arguments);

// A call of a library that enqueues kernels of its own. Which, it may choose by
// the size: the first call of a name and size loads them.
struct LibraryCall {
  const char* name = "";  // a literal, by which errors call it
  int64_t size = 0;
};

// Calls `enqueue` with the calling thread's stream, and checks what it returns.
void EnqueueOn(CudaDevice& device, const LibraryCall& call,
               const std::function<cudaError_t(cudaStream_t)>& enqueue);

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_KERNEL_DEVICE_H_
