#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/gelu_math.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/gelu.h"

namespace troupe::cuda {
namespace {

template <typename T, bool kExact>
__global__ void GeluKernel(const T* x, T* y, int64_t count, bool aligned) {
  constexpr int n = kPack<T>;
  const int64_t begin = FlatBegin(n);
  float values[n];
  Load(x + begin, count - begin, aligned, values);
#pragma unroll
  for (float& v : values) v = kExact ? v * NormalBelow(v) : GeluOf(v);
  Store(y + begin, count - begin, aligned, values);
}

template <typename T, bool kExact>
__global__ void GeluBackwardKernel(const T* x, const T* dy, T* dx,
                                   int64_t count, bool aligned) {
  constexpr int n = kPack<T>;
  const int64_t begin = FlatBegin(n);
  float values[n], gradients[n];
  Load(x + begin, count - begin, aligned, values);
  Load(dy + begin, count - begin, aligned, gradients);
#pragma unroll
  for (int i = 0; i < n; ++i) {
    gradients[i] *= kExact ? GeluExactSlope(values[i]) : GeluSlope(values[i]);
  }
  Store(dx + begin, count - begin, aligned, gradients);
}

constexpr int kThreads = 128;

// Rows [rows, n] of which each may have a weight; those from *end on are left
// alone. A block has a row.
template <typename T>
struct RowsOf {
  const T* x;
  const float* weights;
  const int32_t* end;
  int64_t n;
  bool aligned;

  __device__ bool IsBeyond(int64_t row) const {
    return end != nullptr && row >= *end;
  }
  __device__ float WeightOf(int64_t row) const {
    return weights == nullptr ? 1.0f : weights[row];
  }
};

template <typename T, typename Args>
RowsOf<T> RowsIn(const Args& args, bool aligned) {
  return {.x = args.x.template data<T>(),
          .weights = DataFrom<float>(args.weights, 0),
          .end = args.offsets.defined()
                     ? args.offsets.template data<int32_t>() +
                           args.offsets.elements() - 1
                     : nullptr,
          .n = args.x.columns(),
          .aligned = aligned};
}

template <typename T>
__global__ void GeluOfRowsKernel(RowsOf<T> rows, T* y) {
  constexpr int k = kPack<T>;
  const int64_t row = blockIdx.x;
  if (rows.IsBeyond(row)) return;
  const float weight = rows.WeightOf(row);
  for (int64_t i = int64_t{threadIdx.x} * k; i < rows.n;
       i += int64_t{kThreads} * k) {
    float values[k];
    Load(rows.x + row * rows.n + i, rows.n - i, rows.aligned, values);
#pragma unroll
    for (float& v : values) v = GeluOf(v) * weight;
    Store(y + row * rows.n + i, rows.n - i, rows.aligned, values);
  }
}

// The weight's gradient is added up in a fixed order.
template <typename T>
__global__ void GeluOfRowsBackwardKernel(RowsOf<T> rows, const T* dy, T* dx,
                                         float* d_weights) {
  constexpr int k = kPack<T>;
  const int64_t row = blockIdx.x;
  if (rows.IsBeyond(row)) return;
  const float weight = rows.WeightOf(row);
  float sum = 0;
  for (int64_t i = int64_t{threadIdx.x} * k; i < rows.n;
       i += int64_t{kThreads} * k) {
    float values[k], gradients[k];
    Load(rows.x + row * rows.n + i, rows.n - i, rows.aligned, values);
    Load(dy + row * rows.n + i, rows.n - i, rows.aligned, gradients);
#pragma unroll
    for (int j = 0; j < k; ++j) {
      sum += gradients[j] * GeluOf(values[j]);  // zero beyond n
      gradients[j] *= weight * GeluSlope(values[j]);
    }
    Store(dx + row * rows.n + i, rows.n - i, rows.aligned, gradients);
  }
  if (d_weights == nullptr) return;
  sum = BlockSum(sum);
  if (threadIdx.x == 0) d_weights[row] = sum;
}

template <typename Args>
bool HasRows(const Args& args) {
  return args.weights.defined() || args.offsets.defined();
}

LaunchShape BlockForEachRow(int64_t rows) {
  return {.grid = dim3(static_cast<unsigned>(rows)), .block = dim3(kThreads)};
}

}  // namespace

void Gelu(Device& device, const GeluArgs& args) {
  const int64_t count = args.x.elements();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    constexpr int n = kPack<T>;
    const T* x = args.x.data<T>();
    T* y = args.y.data<T>();
    if (HasRows(args)) {
      const bool aligned = AlignedRows<n>(args.x.columns(), x) &&
                           AlignedRows<n>(args.x.columns(), y);
      return Launch(CudaOf(device), GeluOfRowsKernel<T>,
                    BlockForEachRow(args.x.rows()), RowsIn<T>(args, aligned),
                    y);
    }
    const auto kernel = args.exact ? GeluKernel<T, true> : GeluKernel<T, false>;
    Launch(CudaOf(device), kernel, FlatShape(count, n), x, y, count,
           Aligned<n>(x, y));
  });
}

void GeluBackward(Device& device, const GeluBackwardArgs& args) {
  const int64_t count = args.x.elements();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    constexpr int n = kPack<T>;
    const T* x = args.x.data<T>();
    const T* dy = args.dy.data<T>();
    T* dx = args.dx.data<T>();
    if (HasRows(args)) {
      const bool aligned = AlignedRows<n>(args.x.columns(), x) &&
                           AlignedRows<n>(args.x.columns(), dy) &&
                           AlignedRows<n>(args.x.columns(), dx);
      return Launch(CudaOf(device), GeluOfRowsBackwardKernel<T>,
                    BlockForEachRow(args.x.rows()), RowsIn<T>(args, aligned),
                    dy, dx, DataFrom<float>(args.d_weights, 0));
    }
    const auto kernel =
        args.exact ? GeluBackwardKernel<T, true> : GeluBackwardKernel<T, false>;
    Launch(CudaOf(device), kernel, FlatShape(count, n), x, dy, dx, count,
           Aligned<n>(x, dy, dx));
  });
}

}  // namespace troupe::cuda
