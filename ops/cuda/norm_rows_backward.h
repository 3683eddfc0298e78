// The rows of the input's gradient of layer norm (kCentred) and RMS norm: one
// block a row, as norm_rows.h.
#ifndef TROUPE_OPS_CUDA_NORM_ROWS_BACKWARD_H_
#define TROUPE_OPS_CUDA_NORM_ROWS_BACKWARD_H_

#include <cstdint>

#include "ops/cuda/norm_rows.h"

namespace troupe::cuda {

template <typename T>
struct RawNormBackward {
  int64_t n;
  RowStarts starts;
  const T *dy, *s, *gamma;
  const float *mean, *rstd;
  const T* residual_gradient;  // or null
  T* dx;
  bool aligned;
};

// With g = dy * gamma and h = (s - mean) rstd, what was normalised:
//   dx = rstd (g - mean(g) - h mean(g h)), for RMS norm without mean(g).
template <typename T, bool kCentred>
__global__ void NormBackwardKernel(RawNormBackward<T> a) {
  constexpr int k = kPack<T>;
  float* const g_row = DynamicShared<float>();
  const int64_t h_row = KeptFloats<T>(a.n, blockDim.x);  // behind it
  const int64_t start = a.starts(blockIdx.x);
  const float mean = kCentred ? a.mean[blockIdx.x] : 0;
  const float rstd = a.rstd[blockIdx.x];
  float g_sum = 0, gh_sum = 0;
  ForMine<T>(a.n, g_row, [&](int64_t i, int64_t count, Kept g_kept) {
    const Kept h_kept = {g_kept.at + h_row};
    float dy[k], s[k], gamma[k];
    Load(a.dy + start + i, count, a.aligned, dy);
    Load(a.s + start + i, count, a.aligned, s);
    Load(a.gamma + i, count, a.aligned, gamma);
#pragma unroll
    for (int j = 0; j < k; ++j) {  // past the row's end g is zero
      const float g = dy[j] * gamma[j], h = (s[j] - mean) * rstd;
      g_kept[j] = g;
      h_kept[j] = h;
      g_sum += g;
      gh_sum += g * h;
    }
  });
  const float g_mean = kCentred ? BlockSum(g_sum) / a.n : 0;
  const float gh_mean = BlockSum(gh_sum) / a.n;
  ForMine<T>(a.n, g_row, [&](int64_t i, int64_t count, Kept g) {
    const Kept h = {g.at + h_row};
    float dx[k], residual[k] = {};
    if (a.residual_gradient != nullptr) {
      Load(a.residual_gradient + start + i, count, a.aligned, residual);
    }
#pragma unroll
    for (int j = 0; j < k; ++j) {
      dx[j] = rstd * (g[j] - g_mean - h[j] * gh_mean) + residual[j];
    }
    Store(a.dx + start + i, count, a.aligned, dx);
  });
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_NORM_ROWS_BACKWARD_H_
