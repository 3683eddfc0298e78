#include "ops/cuda/dropout_mask.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/dropout.h"

namespace troupe::cuda {
namespace {

template <typename T>
__global__ void DropoutKernel(const T* x, const T* residual, T* y,
                              int64_t count, bool aligned, RawDropout dropout) {
  constexpr int n = kPack<T>;
  const int64_t begin = FlatBegin(n);
  if (begin >= count) return;
  float values[n];
  Load(x + begin, count - begin, aligned, values);
  if (dropout.threshold != 0) {
    float factors[n];
    DropoutFactors(dropout, begin, factors);
#pragma unroll
    for (int i = 0; i < n; ++i) values[i] *= factors[i];
  }
  if (residual != nullptr) {
    float other[n];
    Load(residual + begin, count - begin, aligned, other);
#pragma unroll
    for (int i = 0; i < n; ++i) values[i] += other[i];
  }
  Store(y + begin, count - begin, aligned, values);
}

}  // namespace

void ApplyDropout(Device& device, const ApplyDropoutArgs& args) {
  const int64_t count = args.x.elements();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    const T* x = args.x.data<T>();
    const T* residual = DataFrom<T>(args.residual, 0);
    T* y = args.y.data<T>();
    constexpr int n = kPack<T>;
    Launch(CudaOf(device), DropoutKernel<T>, FlatShape(count, n), x, residual,
           y, count, Aligned<n>(x, residual, y), ToRaw(args.mask));
  });
}

}  // namespace troupe::cuda
