// How a kernel tells the device of a fault (fault.h). The first to come is
// kept.
#ifndef TROUPE_OPS_CUDA_REPORT_H_
#define TROUPE_OPS_CUDA_REPORT_H_

#include "ops/cuda/fault.h"

namespace troupe::cuda {

__device__ inline void Report(Fault* to, const Fault& fault) {
  if (atomicCAS(&to->taken, 0, 1) != 0) return;
  to->value = fault.value;
  to->index = fault.index;
  to->limit = fault.limit;
  __threadfence_system();  // a reader that sees the kind sees the rest
  to->kind = fault.kind;
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_REPORT_H_
