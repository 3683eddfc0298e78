#include <cstdint>

#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/int4.h"

namespace troupe::cuda {
namespace {

struct RawInt4 {
  float* elements;
  uint8_t* compressed;
  int64_t n;
};

// A warp has a block, and each of its threads two elements, which share a byte.
constexpr int kWarp = 32;
constexpr int kThreads = 256;

LaunchShape ShapeOf(int64_t n) {
  constexpr int64_t kElements = kThreads * 2;
  return {.grid = dim3(static_cast<unsigned>((n + kElements - 1) / kElements)),
          .block = dim3(kThreads)};
}

__device__ uint8_t NumberOf(float x, float scale) {
  if (!(scale > 0)) return 8;
  return static_cast<uint8_t>(8 +
                              fminf(fmaxf(rintf(__fdiv_rn(x, scale)), -7), 7));
}

__global__ void ToInt4Kernel(RawInt4 a) {
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t first = 2 * thread;
  const int64_t block = thread / kWarp;
  if (block * kInt4Block >= a.n) return;  // all of the warp
  const float x = first < a.n ? a.elements[first] : 0;
  const float y = first + 1 < a.n ? a.elements[first + 1] : 0;
  float largest = fmaxf(fabsf(x), fabsf(y));
  bool finite = isfinite(x) && isfinite(y);
  for (int apart = kWarp / 2; apart > 0; apart /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, apart));
  }
  finite = __all_sync(~0u, finite);
  const float scale =
      finite ? __fdiv_rn(largest, 7.0f) : __int_as_float(0x7fc00000);
  uint8_t* const to = a.compressed + block * kInt4BlockBytes;
  const int lane = threadIdx.x % kWarp;
  if (lane == 0) *reinterpret_cast<float*>(to) = scale;
  to[sizeof(float) + lane] =
      static_cast<uint8_t>(NumberOf(x, scale) | (NumberOf(y, scale) << 4));
}

__global__ void FromInt4Kernel(RawInt4 a) {
  const int64_t thread = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t first = 2 * thread;
  if (first >= a.n) return;
  const uint8_t* const from = a.compressed + thread / kWarp * kInt4BlockBytes;
  const float scale = *reinterpret_cast<const float*>(from);
  const uint8_t both = from[sizeof(float) + threadIdx.x % kWarp];
  a.elements[first] = static_cast<float>((both & 15) - 8) * scale;
  if (first + 1 < a.n) {
    a.elements[first + 1] = static_cast<float>((both >> 4) - 8) * scale;
  }
}

RawInt4 RawOf(const Int4Args& args) {
  return {
      .elements = args.elements.data<float>(),
      .compressed = reinterpret_cast<uint8_t*>(args.compressed.data<float>()),
      .n = args.elements.elements()};
}

}  // namespace

void ToInt4(Device& device, const Int4Args& args) {
  Launch(CudaOf(device), ToInt4Kernel, ShapeOf(args.elements.elements()),
         RawOf(args));
}

void FromInt4(Device& device, const Int4Args& args) {
  Launch(CudaOf(device), FromInt4Kernel, ShapeOf(args.elements.elements()),
         RawOf(args));
}

}  // namespace troupe::cuda
