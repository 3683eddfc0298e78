// The calls of ops/attention.h that cuDNN computes: in bf16 or fp16, of whole
// sequences that are trained on, without dropout, whose mask would be another
// than ours, with heads of up to 128 dims. Where they return false nothing was
// enqueued, and our own kernels do it.
#ifndef TROUPE_OPS_CUDA_ATTENTION_BY_CUDNN_H_
#define TROUPE_OPS_CUDA_ATTENTION_BY_CUDNN_H_

#include "ops/attention.h"
#include "ops/cuda/cuda_device.h"

namespace troupe::cuda {

bool AttentionByCudnn(CudaDevice& cuda, const AttentionArgs& args);
bool AttentionBackwardByCudnn(CudaDevice& cuda,
                              const AttentionBackwardArgs& args);

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_BY_CUDNN_H_
