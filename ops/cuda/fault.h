// What a kernel says when it meets a number that only a bug can have put there,
// such as a token outside the vocabulary. A kernel cannot CHECK: it writes the
// first such find here, goes on with a harmless value, and the device's next
// Synchronize returns it.
#ifndef TROUPE_OPS_CUDA_FAULT_H_
#define TROUPE_OPS_CUDA_FAULT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace troupe {

enum class FaultKind : int { kNone = 0, kToken, kTarget, kExpert };

// In pinned host memory, which kernels write through their own address space.
// The host reads it only when the kernel has surely finished.
struct Fault {
  FaultKind kind = FaultKind::kNone;
  int64_t value = 0;
  int64_t index = 0;  // where the value stands
  int64_t limit = 0;  // the value must be below
  int taken = 0;      // by the first thread that has something to say
};

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_FAULT_H_
