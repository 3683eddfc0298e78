// The rows of layer norm (kCentred) and RMS norm: one block a row, which reads
// the row once, keeps it as f32 in shared memory, and writes it once. A thread
// meets only elements that it wrote there itself, each in a column of its own,
// so that no bank waits; what the threads share are the sums.
#ifndef TROUPE_OPS_CUDA_NORM_ROWS_H_
#define TROUPE_OPS_CUDA_NORM_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "ops/cuda/block.h"
#include "ops/cuda/dropout_mask.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/launch.h"

namespace troupe::cuda {

// Where rows begin: those of a group lie one after another (RowGroups). A grid
// has fewer than 2^31 of them, which 32 bits divide in a fraction of the time.
struct RowStarts {
  int64_t n;
  int64_t group_rows, group_stride;

  __device__ int64_t operator()(int64_t row) const {
    if (group_rows == 1) return row * group_stride;
    const auto rows = static_cast<uint32_t>(group_rows);
    const uint32_t group = static_cast<uint32_t>(row) / rows;
    const uint32_t within = static_cast<uint32_t>(row) - group * rows;
    return group * group_stride + within * n;
  }
};

// Of a tensor without gaps.
inline RowStarts DenseRows(int64_t n) { return {n, 1, n}; }

// `beta` and `mean` are layer norm's only.
template <typename T>
struct RawNorm {
  int64_t n;
  RowStarts starts;
  const T* x;
  const T* residual;  // or null
  T* sum;             // iff residual
  RawDropout dropout;
  const T *gamma, *beta;
  float epsilon;
  T* y;
  float *mean, *rstd;  // or null
  bool aligned;
};

// Elements of a thread in a row that is kept in shared memory.
struct Kept {
  __device__ float& operator[](int j) const { return at[j * blockDim.x]; }

  float* at;
};

// run(column, count, kept): all columns of a thread, kPack<T> at a time, with
// where they are kept, of a row that begins at `row`.
template <typename T, typename Run>
__device__ inline void ForMine(int64_t n, float* row, const Run& run) {
  constexpr int k = kPack<T>;
  const int64_t step = int64_t{blockDim.x} * k;
  int64_t i = int64_t{threadIdx.x} * k;
  for (float* at = row + threadIdx.x; i < n; i += step, at += step) {
    run(i, n - i, Kept{at});
  }
}

// Floats of a row that is kept.
template <typename T>
__host__ __device__ inline int64_t KeptFloats(int64_t n, int64_t threads) {
  const int64_t step = threads * kPack<T>;
  return (n + step - 1) / step * step;
}

// residual + dropout(x), rounded as it is stored, or x. Zero past the row's
// end.
template <typename T>
__device__ inline void LoadNormed(const RawNorm<T>& a, int64_t at,
                                  int64_t count, float (&s)[kPack<T>]) {
  constexpr int k = kPack<T>;
  Load(a.x + at, count, a.aligned, s);
  if (a.residual == nullptr) return;
  if (a.dropout.threshold != 0) {
    float factors[k];
    DropoutFactors(a.dropout, at, factors);
#pragma unroll
    for (int i = 0; i < k; ++i) s[i] *= factors[i];
  }
  float residual[k];
  Load(a.residual + at, count, a.aligned, residual);
#pragma unroll
  for (int i = 0; i < k; ++i) {
    s[i] = FromElement(Rounded<T>(s[i] + residual[i]));
  }
  Store(a.sum + at, count, a.aligned, s);
}

template <typename T, bool kCentred>
__global__ void NormKernel(RawNorm<T> a) {
  constexpr int k = kPack<T>;
  float* const row = DynamicShared<float>();
  const int64_t start = a.starts(blockIdx.x);
  float total = 0;
  ForMine<T>(a.n, row, [&](int64_t i, int64_t count, Kept kept) {
    float s[k];
    LoadNormed(a, start + i, count, s);
#pragma unroll
    for (int j = 0; j < k; ++j) {
      kept[j] = s[j];
      total += kCentred ? s[j] : s[j] * s[j];
    }
  });
  float mean = 0;
  float squares = BlockSum(total);
  if constexpr (kCentred) {
    mean = squares / a.n;
    total = 0;
    ForMine<T>(a.n, row, [&](int64_t i, int64_t count, Kept kept) {
#pragma unroll
      for (int j = 0; j < k; ++j) {
        const float d = j < count ? kept[j] - mean : 0;
        total += d * d;
      }
    });
    squares = BlockSum(total);
  }
  const float rstd = 1.0f / sqrtf(squares / a.n + a.epsilon);
  ForMine<T>(a.n, row, [&](int64_t i, int64_t count, Kept kept) {
    float gamma[k], beta[k] = {}, y[k];
    Load(a.gamma + i, count, a.aligned, gamma);
    if constexpr (kCentred) Load(a.beta + i, count, a.aligned, beta);
#pragma unroll
    for (int j = 0; j < k; ++j) {
      y[j] = (kept[j] - mean) * rstd * gamma[j] + beta[j];
    }
    Store(a.y + start + i, count, a.aligned, y);
  });
  if (threadIdx.x == 0) {
    if (kCentred && a.mean != nullptr) a.mean[blockIdx.x] = mean;
    if (a.rstd != nullptr) a.rstd[blockIdx.x] = rstd;
  }
}

// One block for each row, of which it keeps `kept_rows`: with as many threads
// as have equally many packs of it each.
template <typename T>
LaunchShape NormShape(int64_t rows, int64_t n, int kept_rows) {
  constexpr int k = kPack<T>;
  const int64_t turns = std::max<int64_t>(
      1, (n + int64_t{kThreadsForRowMax} * k - 1) / (kThreadsForRowMax * k));
  const int threads = ThreadsForRow(n, static_cast<int>(turns * k));
  return {
      .grid = dim3(static_cast<unsigned>(rows)),
      .block = dim3(threads),
      .shared_bytes = kept_rows * KeptFloats<T>(n, threads) * sizeof(float)};
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_NORM_ROWS_H_
