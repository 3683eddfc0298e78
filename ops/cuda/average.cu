#include "ops/average.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"

namespace troupe::cuda {
namespace {

struct RawAverage {
  const float* weights;
  float* average;
  double kept, taken;
  int64_t n;
};

__global__ void AverageKernel(RawAverage a) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= a.n) return;
  a.average[i] =
      static_cast<float>(a.kept * a.average[i] + a.taken * a.weights[i]);
}

}  // namespace

void Average(Device& device, const AverageArgs& args) {
  const int64_t n = args.weights.elements();
  const AverageFactors factors = FactorsOf(args.decay);
  Launch(CudaOf(device), AverageKernel, FlatShape(n, 1),
         {.weights = args.weights.data<float>(),
          .average = args.average.data<float>(),
          .kept = factors.kept,
          .taken = factors.taken,
          .n = n});
}

}  // namespace troupe::cuda
