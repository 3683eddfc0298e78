// Short-lived working memory of a kernel, such as the partial sums of a
// reduction. It comes from and goes back to the device's pool in the order of
// the calling thread's stream, so that no one waits for it. A training step
// takes nothing from the driver: Device::PrepareScratch has, before the first.
//
//   Scratch sums(cuda, blocks * sizeof(double));
//   Launch(cuda, PartialSums, {...}, x, sums.as<double>());
//   Launch(cuda, TotalOf, {...}, sums.as<double>(), result);
#ifndef TROUPE_OPS_CUDA_SCRATCH_H_
#define TROUPE_OPS_CUDA_SCRATCH_H_

#include <cstddef>

#include "ops/cuda/kernel_device.h"

namespace troupe {

// Aligned to 256 bytes, uninitialised. May be destroyed while what was enqueued
// still uses it. Where there is no memory the device fails, with a message that
// says how much there is, and nothing that would use it is launched.
class Scratch {
 public:
  Scratch(CudaDevice& device, size_t bytes);
  Scratch(const Scratch&) = delete;
  ~Scratch();

  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  CudaDevice& device_;
  void* memory_ = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_SCRATCH_H_
