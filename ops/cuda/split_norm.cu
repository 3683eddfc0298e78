#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/split_norm.h"

namespace troupe::cuda {
namespace {

// A block has a row, and reads it once from memory; a thread has kPack<T>
// elements of it at a time. run(column, count): all of a thread's.
template <typename T, typename Run>
__device__ inline void ForMine(int64_t n, const Run& run) {
  constexpr int k = kPack<T>;
  for (int64_t i = int64_t{threadIdx.x} * k; i < n;
       i += int64_t{blockDim.x} * k) {
    run(i, n - i);
  }
}

template <typename T>
LaunchShape RowShape(const Tensor& x) {
  return {.grid = dim3(static_cast<unsigned>(x.rows())),
          .block = dim3(ThreadsForRow(x.columns(), kPack<T>))};
}

// Squares of f32 are exact in f64.
template <typename T>
__global__ void RowSumsKernel(const T* x, double* row_sums, int64_t n,
                              bool aligned) {
  constexpr int k = kPack<T>;
  x += blockIdx.x * n;
  double sum = 0, squares = 0;
  ForMine<T>(n, [&](int64_t i, int64_t count) {
    float values[k];
    Load(x + i, count, aligned, values);
#pragma unroll
    for (int j = 0; j < k; ++j) {
      const double value = values[j];
      sum += value;
      squares += value * value;
    }
  });
  sum = BlockSum(sum);
  squares = BlockSum(squares);
  if (threadIdx.x == 0) {
    row_sums[2 * int64_t{blockIdx.x}] = sum;
    row_sums[2 * int64_t{blockIdx.x} + 1] = squares;
  }
}

template <typename T>
struct RawRowSumsBackward {
  int64_t n;
  const T* x;
  const double* row_sums_gradient;
  const T* residual_gradient;  // or null
  T* dx;
  bool aligned;
};

// g0 and 2 x g1 nearly cancel where a row's mean is large: both are f64.
template <typename T>
__global__ void RowSumsBackwardKernel(RawRowSumsBackward<T> a) {
  constexpr int k = kPack<T>;
  const int64_t start = blockIdx.x * a.n;
  const double g0 = a.row_sums_gradient[2 * int64_t{blockIdx.x}];
  const double slope = 2 * a.row_sums_gradient[2 * int64_t{blockIdx.x} + 1];
  ForMine<T>(a.n, [&](int64_t i, int64_t count) {
    float x[k], dx[k] = {};
    Load(a.x + start + i, count, a.aligned, x);
    if (a.residual_gradient != nullptr) {
      Load(a.residual_gradient + start + i, count, a.aligned, dx);
    }
#pragma unroll
    for (int j = 0; j < k; ++j) {
      dx[j] += static_cast<float>(g0 + slope * x[j]);
    }
    Store(a.dx + start + i, count, a.aligned, dx);
  });
}

template <typename T>
struct RawSplitNorm {
  int64_t n;
  int64_t columns;
  const T* x;
  const double* row_sums;
  const T *gamma, *beta;  // beta: or null
  bool centred;
  float epsilon;
  T* y;
  float *mean, *rstd;  // or null
  bool aligned;
};

template <typename T>
__global__ void SplitNormKernel(RawSplitNorm<T> a) {
  constexpr int k = kPack<T>;
  const int64_t row = blockIdx.x;
  const int64_t start = row * a.n;
  const double mean = a.centred ? a.row_sums[2 * row] / a.columns : 0;
  const double variance = a.row_sums[2 * row + 1] / a.columns - mean * mean;
  const float shift = static_cast<float>(mean);
  const float scale =
      static_cast<float>(1 / sqrt((variance < 0 ? 0 : variance) + a.epsilon));
  ForMine<T>(a.n, [&](int64_t i, int64_t count) {
    float x[k], gamma[k], beta[k] = {}, y[k];
    Load(a.x + start + i, count, a.aligned, x);
    Load(a.gamma + i, count, a.aligned, gamma);
    if (a.beta != nullptr) Load(a.beta + i, count, a.aligned, beta);
#pragma unroll
    for (int j = 0; j < k; ++j) {
      y[j] = (x[j] - shift) * scale * gamma[j] + beta[j];
    }
    Store(a.y + start + i, count, a.aligned, y);
  });
  if (threadIdx.x == 0) {
    if (a.mean != nullptr) a.mean[row] = shift;
    if (a.rstd != nullptr) a.rstd[row] = scale;
  }
}

template <typename T>
struct RawSplitNormBackward {
  int64_t n;
  int64_t columns;
  const T *dy, *x, *gamma;
  const float *mean, *rstd;    // mean: null for RMS norm
  const T* residual_gradient;  // or null
  T* dx;
  double* row_sums_gradient;
  bool aligned;
};

// With g = gamma dy. A thread reads elements before it writes them.
template <typename T>
__global__ void SplitNormBackwardKernel(RawSplitNormBackward<T> a) {
  constexpr int k = kPack<T>;
  const int64_t row = blockIdx.x;
  const int64_t start = row * a.n;
  const float mean = a.mean != nullptr ? a.mean[row] : 0;
  const float rstd = a.rstd[row];
  float g_sum = 0, gd_sum = 0;
  ForMine<T>(a.n, [&](int64_t i, int64_t count) {
    float dy[k], x[k], gamma[k], dx[k] = {};
    Load(a.dy + start + i, count, a.aligned, dy);
    Load(a.x + start + i, count, a.aligned, x);
    Load(a.gamma + i, count, a.aligned, gamma);
    if (a.residual_gradient != nullptr) {
      Load(a.residual_gradient + start + i, count, a.aligned, dx);
    }
#pragma unroll
    for (int j = 0; j < k; ++j) {  // past the row's end g is zero
      const float g = dy[j] * gamma[j];
      g_sum += g;
      gd_sum += g * (x[j] - mean);
      dx[j] += g * rstd;
    }
    Store(a.dx + start + i, count, a.aligned, dx);
  });
  const double sum = BlockSum(g_sum);
  const double scale = rstd;
  const double g1 = -0.5 * scale * scale * scale * BlockSum(gd_sum) / a.columns;
  if (threadIdx.x == 0) {
    a.row_sums_gradient[2 * row] =
        a.mean != nullptr ? -scale * sum / a.columns - 2.0 * mean * g1 : 0;
    a.row_sums_gradient[2 * row + 1] = g1;
  }
}

}  // namespace

void RowSums(Device& device, const RowSumsArgs& args) {
  const int64_t n = args.x.columns();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    const T* x = args.x.data<T>();
    Launch(CudaOf(device), RowSumsKernel<T>, RowShape<T>(args.x), x,
           args.row_sums.data<double>(), n, AlignedRows<kPack<T>>(n, x));
  });
}

void RowSumsBackward(Device& device, const RowSumsBackwardArgs& args) {
  const int64_t n = args.x.columns();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    RawRowSumsBackward<T> raw = {
        .n = n,
        .x = args.x.data<T>(),
        .row_sums_gradient = args.row_sums_gradient.data<double>(),
        .residual_gradient = DataFrom<T>(args.residual_gradient, 0),
        .dx = args.dx.data<T>()};
    raw.aligned =
        AlignedRows<kPack<T>>(n, raw.x, raw.residual_gradient, raw.dx);
    Launch(CudaOf(device), RowSumsBackwardKernel<T>, RowShape<T>(args.x), raw);
  });
}

void SplitNorm(Device& device, const SplitNormArgs& args) {
  const int64_t n = args.x.columns();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    RawSplitNorm<T> raw = {.n = n,
                           .columns = args.columns,
                           .x = args.x.data<T>(),
                           .row_sums = args.row_sums.data<double>(),
                           .gamma = args.gamma.data<T>(),
                           .beta = DataFrom<T>(args.beta, 0),
                           .centred = args.centred,
                           .epsilon = args.epsilon,
                           .y = args.y.data<T>(),
                           .mean = DataFrom<float>(args.mean, 0),
                           .rstd = DataFrom<float>(args.rstd, 0)};
    raw.aligned = AlignedRows<kPack<T>>(n, raw.x, raw.gamma, raw.beta, raw.y);
    Launch(CudaOf(device), SplitNormKernel<T>, RowShape<T>(args.x), raw);
  });
}

void SplitNormBackwardInput(Device& device,
                            const SplitNormBackwardInputArgs& args) {
  const int64_t n = args.dy.columns();
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    RawSplitNormBackward<T> raw = {
        .n = n,
        .columns = args.columns,
        .dy = args.dy.data<T>(),
        .x = args.x.data<T>(),
        .gamma = args.gamma.data<T>(),
        .mean = DataFrom<float>(args.mean, 0),
        .rstd = args.rstd.data<float>(),
        .residual_gradient = DataFrom<T>(args.residual_gradient, 0),
        .dx = args.dx.data<T>(),
        .row_sums_gradient = args.row_sums_gradient.data<double>()};
    raw.aligned = AlignedRows<kPack<T>>(n, raw.dy, raw.x, raw.gamma,
                                        raw.residual_gradient, raw.dx);
    Launch(CudaOf(device), SplitNormBackwardKernel<T>, RowShape<T>(args.dy),
           raw);
  });
}

}  // namespace troupe::cuda
