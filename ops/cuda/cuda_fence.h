// A Fence of a GPU: an event in the stream of the thread that recorded it.
#ifndef TROUPE_OPS_CUDA_CUDA_FENCE_H_
#define TROUPE_OPS_CUDA_CUDA_FENCE_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "ops/cuda/cuda_device.h"
#include "ops/fence.h"

namespace troupe {

class CudaFence final : public Fence {
 public:
  // In the calling thread's stream, also where the device has failed. Where
  // that thread has none there is no event either, and nothing to wait for.
  static std::unique_ptr<CudaFence> Record(CudaDevice& device, FenceUse use);
  ~CudaFence() override;

  // May be null where the device had failed.
  cudaEvent_t event() const { return event_; }

  absl::Status Await() override;
  bool HasRun() const override;
  int64_t NanosSince(const Fence& earlier) const override;

 private:
  CudaFence(CudaDevice& device, FenceUse use) : device_(device), use_(use) {}

  CudaDevice& device_;
  const FenceUse use_;
  cudaEvent_t event_ = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_CUDA_FENCE_H_
