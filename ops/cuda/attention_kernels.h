// The kernels of attention as ops/cuda/attention.cu enqueues them, for T float,
// uint16_t (bf16) and Fp16.
#ifndef TROUPE_OPS_CUDA_ATTENTION_KERNELS_H_
#define TROUPE_OPS_CUDA_ATTENTION_KERNELS_H_

#include "ops/cuda/attention_heads.h"
#include "ops/cuda/kernel_device.h"
#include "proto/base/gpu_limits.h"

namespace troupe::cuda {

constexpr int kAttentionHeadDimMax = kGpuHeadDimMax;

// Beside each launch is what a block of it asks for of shared memory, for heads
// of a number of dims.

// o and logsumexp.
template <typename T>
void LaunchForward(CudaDevice& device, const RawAttention<T>& a);
template <typename T>
size_t SharedBytesOfForward(int head_dim);

// The same, where there are few queries and many keys, by blocks that share the
// keys of a head. False, and nothing done, for other shapes.
template <typename T>
bool LaunchPartsForward(CudaDevice& device, const RawAttention<T>& a);
template <typename T>
size_t SharedBytesOfPartsForward(int head_dim);

// The backward, in this order: delta from o and d_o; then dq; then dk and dv.
template <typename T>
void LaunchDelta(CudaDevice& device, const RawAttention<T>& a);
template <typename T>
void LaunchGradientOfQueries(CudaDevice& device, const RawAttention<T>& a);
template <typename T>
size_t SharedBytesOfGradientOfQueries(int head_dim);
template <typename T>
void LaunchGradientsOfKeys(CudaDevice& device, const RawAttention<T>& a);
template <typename T>
size_t SharedBytesOfGradientsOfKeys(int head_dim);

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_KERNELS_H_
