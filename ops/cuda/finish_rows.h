// What follows a product of matrices where cuBLASLt does not fuse it.
#ifndef TROUPE_OPS_CUDA_FINISH_ROWS_H_
#define TROUPE_OPS_CUDA_FINISH_ROWS_H_

#include "ops/cuda/kernel_device.h"
#include "ops/matmul.h"
#include "ops/tensor.h"

namespace troupe::cuda {

// args.c = activation(sums + bias), and args.pre_activation the rest, as
// ops/matmul.h says. `sums` is f32 of args.c's rows and columns, and may be
// args.c.
void FinishRows(CudaDevice& device, const MatMulArgs& args, const Tensor& sums);

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_FINISH_ROWS_H_
