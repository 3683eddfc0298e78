#include "ops/cuda/attention_kernels.h"
#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/launch.h"

namespace troupe::cuda {
namespace {

constexpr int kWarps = 8;  // of a block
constexpr int kAtOnce = 4;

// delta = rowsum(dO o O), a warp for each row of a head; neighbouring warps
// take neighbouring heads, which lie side by side.
template <typename T>
__global__ void DeltaKernel(RawAttention<T> a) {
  const int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  const int head = static_cast<int>(row % a.heads);
  const int query = static_cast<int>(row / a.heads % a.q_length());
  const int sample = static_cast<int>(row / a.heads / a.q_length());
  if (sample >= a.batch) return;
  const int lane = threadIdx.x % kWarp;
  const T* o = a.o.From(sample, head, a.head_dim, query).first;
  const T* d_o = a.d_o.From(sample, head, a.head_dim, query).first;
  const bool aligned = a.o.vectors && a.d_o.vectors;
  float sum = 0;
  for (int d = lane * kAtOnce; d < a.head_dim; d += kWarp * kAtOnce) {
    float x[kAtOnce], y[kAtOnce];
    Load(o + d, a.head_dim - d, aligned, x);
    Load(d_o + d, a.head_dim - d, aligned, y);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) sum = fmaf(x[i], y[i], sum);
  }
  sum = WarpSum(sum);
  if (lane == 0) a.delta[a.RowOf(sample, head, query)] = sum;
}

}  // namespace

template <typename T>
void LaunchDelta(CudaDevice& device, const RawAttention<T>& a) {
  const int64_t rows = int64_t{a.batch} * a.heads * a.q_length();
  Launch(device, DeltaKernel<T>,
         {.grid = static_cast<unsigned>((rows + kWarps - 1) / kWarps),
          .block = kWarp * kWarps},
         a);
}

template void LaunchDelta(CudaDevice&, const RawAttention<float>&);
template void LaunchDelta(CudaDevice&, const RawAttention<uint16_t>&);
template void LaunchDelta(CudaDevice&, const RawAttention<Fp16>&);

}  // namespace troupe::cuda
