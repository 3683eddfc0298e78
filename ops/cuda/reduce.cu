#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/reduce.h"

namespace troupe::cuda {
namespace {

template <typename T>
__global__ void FillKernel(T* x, int64_t count, bool aligned, float value) {
  constexpr int n = kPack<T>;
  const int64_t begin = FlatBegin(n);
  float values[n];
#pragma unroll
  for (float& v : values) v = value;
  Store(x + begin, count - begin, aligned, values);
}

}  // namespace

void Fill(Device& device, const FillArgs& args) {
  CudaDevice& cuda = CudaDevice::From(device);
  const int64_t count = args.x.elements();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    constexpr int n = kPack<T>;
    T* x = args.x.data<T>();
    Launch(cuda, FillKernel<T>, FlatShape(count, n), x, count, Aligned<n>(x),
           args.value);
  });
}

}  // namespace troupe::cuda
