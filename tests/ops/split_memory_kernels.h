// The kernels of split_memory_device.h: those of the CPU, enqueued, on the real
// places of their tensors.
#ifndef TROUPE_TESTS_OPS_SPLIT_MEMORY_KERNELS_H_
#define TROUPE_TESTS_OPS_SPLIT_MEMORY_KERNELS_H_

#include "ops/kernel_table.h"

namespace troupe {

extern const KernelTable kSplitMemoryKernels;

}  // namespace troupe

#endif  // TROUPE_TESTS_OPS_SPLIT_MEMORY_KERNELS_H_
