#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/swiglu.h"

namespace troupe::cuda {
namespace {

// Beyond this the sigmoid is 0 or 1 to f32, and x times it is 0 or x: holding x
// back keeps infinite times zero out.
constexpr float kFar = 80.0f;

constexpr int kThreads = 128;

// A tensor [rows, n] whose rows may be strided.
template <typename T>
struct Rows {
  explicit Rows(const Tensor& t) : data(t.data<T>()), stride(t.RowStride()) {}

  bool aligned() const { return AlignedRows<kPack<T>>(stride, data); }
  __device__ T* At(int64_t row, int64_t column) const {
    return data + row * stride + column;
  }

  T* data;
  int64_t stride;
};

// 1 / (1 + e), e at most what kFar leaves: good to two units in the last place.
__device__ inline float SigmoidOf(float e) {
  return __fdividef(1.0f, 1.0f + e);
}

// Held back at the far left; NaN stays.
__device__ inline float Near(float x) { return x < -kFar ? -kFar : x; }

// A block: a row's next kThreads * kPack<T> columns.
template <typename T>
__device__ inline int64_t Column() {
  return (int64_t{blockIdx.y} * kThreads + threadIdx.x) * kPack<T>;
}

// Where the number of rows lies; null: all that the tensors have room for.
const int32_t* EndOf(const Tensor& offsets) {
  return offsets.defined() ? offsets.data<int32_t>() + offsets.elements() - 1
                           : nullptr;
}
__device__ inline bool IsBeyond(const int32_t* end, int64_t row) {
  return end != nullptr && row >= *end;
}

template <typename T>
LaunchShape RowsShape(int64_t rows, int64_t n) {
  constexpr int64_t kBlock = kThreads * kPack<T>;
  return {.grid = dim3(static_cast<unsigned>(rows),
                       static_cast<unsigned>((n + kBlock - 1) / kBlock)),
          .block = dim3(kThreads)};
}

template <typename T>
__global__ void SwiGluKernel(Rows<T> gate, Rows<T> up, Rows<T> y,
                             const float* weights, const int32_t* end,
                             int64_t n, bool aligned) {
  constexpr int k = kPack<T>;
  const int64_t row = blockIdx.x, i = Column<T>();
  if (IsBeyond(end, row)) return;
  const float weight = weights == nullptr ? 1.0f : weights[row];
  float x[k], u[k];
  Load(gate.At(row, i), n - i, aligned, x);
  Load(up.At(row, i), n - i, aligned, u);
#pragma unroll
  for (int j = 0; j < k; ++j) {
    const float near = Near(x[j]);
    u[j] = near * SigmoidOf(__expf(-near)) * u[j] * weight;
  }
  Store(y.At(row, i), n - i, aligned, u);
}

template <typename T>
struct SwiGluGradients {
  Rows<T> gate, up, dy, d_gate, d_up;
};

// Of kPack<T> elements of a row of this weight; returns their part of the
// weight's gradient. With s = 1 / (1 + e) the sigmoid: silu' = s + x s (1 - s),
// and 1 - s = e s.
template <typename T>
__device__ inline float Gradients(const SwiGluGradients<T>& t, int64_t row,
                                  int64_t i, int64_t n, bool aligned,
                                  float weight) {
  constexpr int k = kPack<T>;
  float x[k], u[k], of_y[k];
  Load(t.gate.At(row, i), n - i, aligned, x);
  Load(t.up.At(row, i), n - i, aligned, u);
  Load(t.dy.At(row, i), n - i, aligned, of_y);
  float d_gate[k], d_up[k], of_weight = 0;
#pragma unroll
  for (int j = 0; j < k; ++j) {
    const float near = Near(x[j]);
    const float e = __expf(-near);
    const float s = SigmoidOf(e);
    const float slope = s + (near > kFar ? kFar : near) * (s * (e * s));
    const float gradient = of_y[j] * weight;
    of_weight += of_y[j] * (near * s) * u[j];  // zero beyond n
    d_up[j] = gradient * (near * s);
    d_gate[j] = gradient * u[j] * slope;
  }
  Store(t.d_up.At(row, i), n - i, aligned, d_up);
  Store(t.d_gate.At(row, i), n - i, aligned, d_gate);
  return of_weight;
}

template <typename T>
__global__ void SwiGluBackwardKernel(SwiGluGradients<T> t, const int32_t* end,
                                     int64_t n, bool aligned) {
  if (IsBeyond(end, blockIdx.x)) return;
  Gradients(t, blockIdx.x, Column<T>(), n, aligned, 1.0f);
}

// A block has a row, so that its weight's gradient is added up in a fixed
// order.
template <typename T>
__global__ void WeightedBackwardKernel(SwiGluGradients<T> t,
                                       const float* weights, float* d_weights,
                                       const int32_t* end, int64_t n,
                                       bool aligned) {
  const int64_t row = blockIdx.x;
  if (IsBeyond(end, row)) return;
  const float weight = weights[row];
  float sum = 0;
  for (int64_t i = int64_t{threadIdx.x} * kPack<T>; i < n;
       i += int64_t{kThreads} * kPack<T>) {
    sum += Gradients(t, row, i, n, aligned, weight);
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) d_weights[row] = sum;
}

}  // namespace

void SwiGlu(Device& device, const SwiGluArgs& args) {
  const int64_t rows = args.y.rows(), n = args.y.columns();
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    const Rows<T> gate(args.gate), up(args.up), y(args.y);
    Launch(CudaOf(device), SwiGluKernel<T>, RowsShape<T>(rows, n), gate, up, y,
           DataFrom<float>(args.weights, 0), EndOf(args.offsets), n,
           gate.aligned() && up.aligned() && y.aligned());
  });
}

void SwiGluBackward(Device& device, const SwiGluBackwardArgs& args) {
  const int64_t rows = args.dy.rows(), n = args.dy.columns();
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    const SwiGluGradients<T> t = {.gate = Rows<T>(args.gate),
                                  .up = Rows<T>(args.up),
                                  .dy = Rows<T>(args.dy),
                                  .d_gate = Rows<T>(args.d_gate),
                                  .d_up = Rows<T>(args.d_up)};
    const bool aligned = t.gate.aligned() && t.up.aligned() && t.dy.aligned() &&
                         t.d_gate.aligned() && t.d_up.aligned();
    if (args.weights.defined()) {
      return Launch(
          CudaOf(device), WeightedBackwardKernel<T>,
          {.grid = dim3(static_cast<unsigned>(rows)), .block = dim3(kThreads)},
          t, args.weights.data<float>(), args.d_weights.data<float>(),
          EndOf(args.offsets), n, aligned);
    }
    Launch(CudaOf(device), SwiGluBackwardKernel<T>, RowsShape<T>(rows, n), t,
           EndOf(args.offsets), n, aligned);
  });
}

}  // namespace troupe::cuda
