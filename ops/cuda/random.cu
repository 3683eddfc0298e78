#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/random.h"

namespace troupe::cuda {
namespace {

// A thread: the elements of one Philox block that lie in x.
__global__ void FillNormalKernel(float* x, int64_t count, uint64_t first_index,
                                 PhiloxStream stream, float mean,
                                 float standard_deviation) {
  constexpr double kUnit = 1.0 / 16777216.0;
  constexpr double kTwoPi = 6.283185307179586;
  const uint64_t block = first_index / 4 + FlatBegin(1);
  const std::array<uint32_t, 4> bits = PhiloxBlock(stream, block);
  double normals[4];
#pragma unroll
  for (int pair = 0; pair < 4; pair += 2) {
    const double u = ((bits[pair] >> 8) + 1) * kUnit;
    const double angle = kTwoPi * ((bits[pair + 1] >> 8) * kUnit);
    const double radius = sqrt(-2.0 * log(u));
    normals[pair] = radius * cos(angle);
    normals[pair + 1] = radius * sin(angle);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    // Where the block begins before x does, `at` is below zero.
    const int64_t at = static_cast<int64_t>(block * 4 + i - first_index);
    if (at < 0 || at >= count) continue;
    x[at] = static_cast<float>(mean + standard_deviation * normals[i]);
  }
}

}  // namespace

void FillNormal(Device& device, const FillNormalArgs& args) {
  const int64_t count = args.x.elements();
  if (count == 0) return;
  const uint64_t first = args.first_index / 4;
  const uint64_t last = (args.first_index + count - 1) / 4;
  Launch(CudaOf(device), FillNormalKernel,
         FlatShape(static_cast<int64_t>(last - first + 1), 1),
         args.x.data<float>(), count, args.first_index, args.stream, args.mean,
         args.standard_deviation);
}

}  // namespace troupe::cuda
