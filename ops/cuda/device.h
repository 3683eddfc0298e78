// A GPU as a Device. Each thread that calls ops on it has a stream of its own
// there: what one thread calls keeps its order, what several call may overlap.
// No thread spins while it waits.
#ifndef TROUPE_OPS_CUDA_DEVICE_H_
#define TROUPE_OPS_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "ops/kept_choices.h"

namespace troupe {

// Whether this build has CUDA at all (--config=cuda).
bool BuiltWithCuda();

struct CudaDeviceOptions {
  int ordinal = 0;  // among those that CUDA_VISIBLE_DEVICES leaves
  // Whether attention is by cuDNN where it is there and has kernels for a call.
  bool cudnn = true;
  // Where the fastest kernels of products are kept, borrowed; null: none is
  // looked for, and the library's first guess is taken.
  KeptChoices* choices = nullptr;
};

// Unimplemented in a build without CUDA; FailedPrecondition where there is no
// such GPU, no driver for it, or no code for its generation in this build.
absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(
    const CudaDeviceOptions& options);

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_DEVICE_H_
