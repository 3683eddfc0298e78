// What the threads of a block do together: sums and maxima in a fixed order,
// and the block's dynamic shared memory. Blocks here have one dim, a multiple
// of kWarp, at most 1024.
#ifndef TROUPE_OPS_CUDA_BLOCK_H_
#define TROUPE_OPS_CUDA_BLOCK_H_

#include <algorithm>
#include <cstdint>

namespace troupe::cuda {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

constexpr int64_t kThreadsForRowMax = 512;

// How many threads a row of this many elements keeps busy.
inline int ThreadsForRow(int64_t columns, int per_thread) {
  const int64_t threads = (columns + per_thread - 1) / per_thread;
  const int64_t warps = (threads + kWarp - 1) / kWarp;
  return static_cast<int>(
      std::clamp<int64_t>(warps * kWarp, kWarp, kThreadsForRowMax));
}

// Of all lanes of a warp; the same in each.
template <typename T>
__device__ inline T WarpSum(T value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

// Of all threads of the block; the same in each. A barrier.
template <typename T>
__device__ inline T BlockSum(T value) {
  __shared__ T sums[kWarp];
  const unsigned lane = threadIdx.x % kWarp;
  value = WarpSum(value);
  __syncthreads();  // those of the last call have been read
  if (lane == 0) sums[threadIdx.x / kWarp] = value;
  __syncthreads();
  return WarpSum(lane < blockDim.x / kWarp ? sums[lane] : T{0});
}

// As many bytes as the launch said, aligned to 16.
template <typename T>
__device__ inline T* DynamicShared() {
  extern __shared__ __align__(16) unsigned char dynamic_shared[];
  return reinterpret_cast<T*>(dynamic_shared);
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_BLOCK_H_
