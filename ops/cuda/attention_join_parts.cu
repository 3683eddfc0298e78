#include "ops/cuda/attention_parts.h"
#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/mma.h"

namespace troupe::cuda {
namespace {

// A block for each row [sample, head, query], a thread for some of its dims.
template <typename T>
__global__ void JoinPartsKernel(RawParts<T> p) {
  const RawAttention<T>& a = p.attention;
  const int64_t row = blockIdx.x;
  const float* const largest = p.largest + row * p.parts;
  const float* const sum = p.sum + row * p.parts;
  float top = largest[0];
  for (int part = 1; part < p.parts; ++part) top = fmaxf(top, largest[part]);
  float total = 0;
  for (int part = 0; part < p.parts; ++part) {
    total = fmaf(Exp2(largest[part] - top), sum[part], total);
  }
  const int query = static_cast<int>(row % a.q_length());
  const int head = static_cast<int>(row / a.q_length() % a.heads);
  const int sample = static_cast<int>(row / a.q_length() / a.heads);
  T* const o = a.result.rounded.From(sample, head, a.head_dim, query).first;
  for (int d = threadIdx.x; d < a.head_dim; d += blockDim.x) {
    const float* product = p.products + row * p.parts * a.head_dim + d;
    float value = 0;
    for (int part = 0; part < p.parts; ++part, product += a.head_dim) {
      value = fmaf(Exp2(largest[part] - top), *product, value);
    }
    o[d] = Rounded<T>(value / total);
  }
  if (threadIdx.x == 0 && a.logsumexp != nullptr) {
    a.logsumexp[row] = top * kLn2 + logf(total);
  }
}

}  // namespace

template <typename T>
void LaunchJoinParts(CudaDevice& device, const RawParts<T>& parts) {
  const RawAttention<T>& a = parts.attention;
  const int64_t rows = int64_t{a.batch} * a.heads * a.q_length();
  Launch(device, JoinPartsKernel<T>,
         {.grid = static_cast<unsigned>(rows),
          .block = ThreadsForRow(a.head_dim, 1)},
         parts);
}

template void LaunchJoinParts(CudaDevice&, const RawParts<float>&);
template void LaunchJoinParts(CudaDevice&, const RawParts<uint16_t>&);
template void LaunchJoinParts(CudaDevice&, const RawParts<Fp16>&);

}  // namespace troupe::cuda
