#include "ops/cuda/kernel_device.h"

#include "absl/status/status.h"
#include "ops/cuda/cuda_device.h"

namespace troupe {
namespace {

// Of dynamic shared memory a kernel may use this much without asking: there are
// 48 KiB, of which its static shared memory takes its part.
constexpr size_t kSharedBytesUnasked = 32 << 10;

}  // namespace

CudaDevice& CudaOf(Device& device) { return CudaDevice::From(device); }

bool RefusesDocuments(Device& device, bool asked) {
  if (!asked) return false;
  CudaOf(device).Check(absl::UnimplementedError(
      "data.isolate_documents: no kernel for GPUs keeps attention within "
      "documents; use workers on CPUs, or leave it out"));
  return true;
}

Fault* FaultOf(CudaDevice& device) { return device.fault(); }

void CopyOn(CudaDevice& device, void* to, const void* from, size_t bytes) {
  device.CopyWithin(to, from, bytes);
}

void LaunchOn(CudaDevice& device, const void* kernel, cudaLaunchConfig_t config,
              void** arguments) {
  config.stream = device.stream();
  if (device.failed()) return;
  const size_t shared_bytes = config.dynamicSmemBytes;
  cudaError_t code = cudaSuccess;
  device.first_launches().Run(kernel, [&] {
    if (shared_bytes > kSharedBytesUnasked) {
      code = cudaFuncSetAttribute(kernel,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes));
    }
    if (code == cudaSuccess) {
      code = cudaLaunchKernelExC(&config, kernel, arguments);
    }
  });
  if (code == cudaSuccess) return;
  if (shared_bytes > device.shared_bytes_max()) {
    return device.RefuseSharedBytes(kernel, shared_bytes);
  }
  const char* name = nullptr;
  cudaFuncGetName(&name, kernel);
  device.Check(code, name == nullptr ? "cudaLaunchKernelExC" : name);
}

void EnqueueOn(CudaDevice& device, const LibraryCall& call,
               const std::function<cudaError_t(cudaStream_t)>& enqueue) {
  const cudaStream_t stream = device.stream();
  if (device.failed()) return;
  cudaError_t code = cudaSuccess;
  device.first_launches().Run(
      call.name, [&] { code = enqueue(stream); }, call.size);
  device.Check(code, call.name);
}

}  // namespace troupe
