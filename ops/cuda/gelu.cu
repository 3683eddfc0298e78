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

}  // namespace

void Gelu(Device& device, const GeluArgs& args) {
  const int64_t count = args.x.elements();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    constexpr int n = kPack<T>;
    const T* x = args.x.data<T>();
    T* y = args.y.data<T>();
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
    const auto kernel =
        args.exact ? GeluBackwardKernel<T, true> : GeluBackwardKernel<T, false>;
    Launch(CudaOf(device), kernel, FlatShape(count, n), x, dy, dx, count,
           Aligned<n>(x, dy, dx));
  });
}

}  // namespace troupe::cuda
