#include "ops/kernel_table.h"

#include "ops/cuda/kernels.h"

namespace troupe::cuda {

const KernelTable kKernels = {
    .fill = Fill,
};

}  // namespace troupe::cuda
