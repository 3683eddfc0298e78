#include "ops/cuda/cuda_fence.h"

namespace troupe {

std::unique_ptr<CudaFence> CudaFence::Record(CudaDevice& device, FenceUse use) {
  std::unique_ptr<CudaFence> fence(new CudaFence(device, use));
  cudaStream_t stream = device.stream();
  if (device.failed()) stream = device.made_stream();
  if (stream == nullptr) return fence;
  const absl::StatusOr<cudaEvent_t> event = device.events().Take(use);
  if (!device.Check(event.status())) return fence;
  fence->event_ = *event;
  device.Check(cudaEventRecord(*event, stream), "cudaEventRecord");
  return fence;
}

CudaFence::~CudaFence() {
  if (event_ != nullptr) device_.events().Give(event_, use_);
}

absl::Status CudaFence::Await() {
  if (event_ != nullptr) {
    cudaSetDevice(device_.ordinal());
    device_.Check(cudaEventSynchronize(event_), "cudaEventSynchronize");
  }
  return device_.status();
}

// Any thread may ask, also one that has no device yet: for it CUDA would make
// a context on the first GPU.
bool CudaFence::HasRun() const {
  if (event_ == nullptr) return true;
  cudaSetDevice(device_.ordinal());
  if (cudaEventQuery(event_) != cudaErrorNotReady) return true;
  cudaGetLastError();  // that it has not is no error, for no later call
  return false;
}

int64_t CudaFence::NanosSince(const Fence& earlier) const {
  const CudaFence& from = static_cast<const CudaFence&>(earlier);
  float milliseconds = 0;
  if (event_ == nullptr || from.event_ == nullptr || !device_.MakeCurrent()) {
    return 0;
  }
  device_.Check(cudaEventElapsedTime(&milliseconds, from.event_, event_),
                "cudaEventElapsedTime");
  return static_cast<int64_t>(double{milliseconds} * 1e6);
}

}  // namespace troupe
