// A block of threads has a row; a thread has every n-th column of what is
// written. Elements are moved as they are, but for the gradient of the part
// that all heads share.
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/join_heads.h"

namespace troupe::cuda {
namespace {

constexpr int kThreads = 256;

// Rows of one tensor; no data: it is not there.
template <typename T>
struct Rows {
  T* data = nullptr;
  int64_t sample_stride = 0, time_stride = 0;

  __device__ T* At(int64_t sample, int64_t time) const {
    return data + sample * sample_stride + time * time_stride;
  }
};

template <typename T>
Rows<T> RowsOf(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {.data = tensor.data<T>(),
          .sample_stride = tensor.stride(0),
          .time_stride = tensor.stride(1)};
}

template <typename T>
struct RawJoinHeads {
  Rows<T> q, k, v, shared, y;
  int64_t times;
  int64_t heads, kv_heads;
  int64_t r, n, values;  // columns that turn, the key's others, the value's
  int64_t of_keys;       // columns of a head of k
  bool values_in_keys, interleaved;

  __device__ int64_t width() const { return r + n; }
  __device__ int64_t KeysBegin() const { return heads * width(); }
  __device__ int64_t ValuesBegin() const {
    return KeysBegin() + kv_heads * width();
  }
};

template <typename T>
RawJoinHeads<T> RawOf(const JoinHeadsArgs& args) {
  const int64_t n = args.key_width - args.shared_width;
  return {.q = RowsOf<T>(args.q),
          .k = RowsOf<T>(args.k),
          .v = RowsOf<T>(args.v),
          .shared = RowsOf<T>(args.shared),
          .y = RowsOf<T>(args.y),
          .times = args.y.dim(1),
          .heads = args.heads,
          .kv_heads = args.kv_heads,
          .r = args.shared_width,
          .n = n,
          .values = args.value_width,
          .of_keys = n + (args.values_in_keys ? args.value_width : 0),
          .values_in_keys = args.values_in_keys,
          .interleaved = args.interleaved};
}

// The inverse of TurnedSource.
__device__ int64_t TurnedOf(int64_t source, int64_t r, bool interleaved) {
  if (!interleaved) return source;
  return source / 2 + (source % 2 == 0 ? 0 : r / 2);
}

template <typename T>
__global__ void JoinKernel(RawJoinHeads<T> a) {
  const int64_t sample = blockIdx.x / a.times, time = blockIdx.x % a.times;
  const T* const q = a.q.At(sample, time);
  const T* const k = a.k.At(sample, time);
  const T* const shared = a.shared.At(sample, time);
  T* const y = a.y.At(sample, time);
  const int64_t keys = a.KeysBegin(), values = a.ValuesBegin();
  for (int64_t i = threadIdx.x; i < keys; i += kThreads) {
    const int64_t head = i / a.width(), at = i % a.width();
    y[i] =
        q[head * a.width() +
          (at < a.r ? a.n + TurnedSource(at, a.r, a.interleaved) : at - a.r)];
  }
  for (int64_t i = keys + threadIdx.x; i < values; i += kThreads) {
    const int64_t head = (i - keys) / a.width(), at = (i - keys) % a.width();
    y[i] = at < a.r ? shared[TurnedSource(at, a.r, a.interleaved)]
                    : k[head * a.of_keys + at - a.r];
  }
  const T* const from = a.values_in_keys ? k + a.n : a.v.At(sample, time);
  const int64_t of_values = a.values_in_keys ? a.of_keys : a.values;
  for (int64_t i = threadIdx.x; i < a.kv_heads * a.values; i += kThreads) {
    y[values + i] = from[i / a.values * of_values + i % a.values];
  }
}

template <typename T>
__global__ void PartKernel(RawJoinHeads<T> a) {
  const int64_t sample = blockIdx.x / a.times, time = blockIdx.x % a.times;
  const T* const y = a.y.At(sample, time);
  const T* const keys = y + a.KeysBegin();
  const T* const values = y + a.ValuesBegin();
  if (a.q.data != nullptr) {
    T* const q = a.q.At(sample, time);
    for (int64_t i = threadIdx.x; i < a.KeysBegin(); i += kThreads) {
      const int64_t head = i / a.width(), at = i % a.width();
      q[i] = y[head * a.width() +
               (at < a.n ? a.r + at : TurnedOf(at - a.n, a.r, a.interleaved))];
    }
  }
  if (a.k.data != nullptr) {
    T* const k = a.k.At(sample, time);
    for (int64_t i = threadIdx.x; i < a.kv_heads * a.of_keys; i += kThreads) {
      const int64_t head = i / a.of_keys, at = i % a.of_keys;
      k[i] = at < a.n ? keys[head * a.width() + a.r + at]
                      : values[head * a.values + at - a.n];
    }
  }
  if (a.v.data != nullptr) {
    T* const v = a.v.At(sample, time);
    for (int64_t i = threadIdx.x; i < a.kv_heads * a.values; i += kThreads) {
      v[i] = values[i];
    }
  }
  if (a.shared.data == nullptr) return;
  T* const shared = a.shared.At(sample, time);
  for (int64_t i = threadIdx.x; i < a.r; i += kThreads) {
    float sum = 0;
    for (int64_t head = 0; head < a.kv_heads; ++head) {
      sum += Widened(keys[head * a.width() + i]);
    }
    shared[TurnedSource(i, a.r, a.interleaved)] = Rounded<T>(sum);
  }
}

LaunchShape ShapeOf(const Tensor& y) {
  return {.grid = dim3(static_cast<unsigned>(y.dim(0) * y.dim(1))),
          .block = dim3(kThreads)};
}

}  // namespace

void JoinHeads(Device& device, const JoinHeadsArgs& args) {
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    Launch(CudaOf(device), JoinKernel<T>, ShapeOf(args.y), RawOf<T>(args));
  });
}

void JoinHeadsBackward(Device& device, const JoinHeadsArgs& args) {
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    Launch(CudaOf(device), PartKernel<T>, ShapeOf(args.y), RawOf<T>(args));
  });
}

}  // namespace troupe::cuda
