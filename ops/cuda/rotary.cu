#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/rotary.h"

namespace troupe::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kHalfMax = 256;  // pairs of a head

// Passed by value: the frequencies are the host's, and the kernel's parameters
// are copied as it is launched.
struct Frequencies {
  float at[kHalfMax];
};

template <typename T>
struct RawRotary {
  T* x;
  int64_t sample_stride, time_stride;
  int heads, half;
  int64_t width;  // of a head
  int64_t first_position;
  float cosine_scale, sine_scale;
  bool aligned;
};

// One block for each position and sample, which first computes the position's
// cosines and sines: in double, since they must be right to the last place, and
// so few that it costs nothing.
template <typename T>
__global__ void RotaryKernel(RawRotary<T> a, Frequencies frequencies) {
  constexpr int k = kPack<T>;
  __shared__ float cosines[kHalfMax], sines[kHalfMax];
  const int64_t position = a.first_position + blockIdx.x;
  for (int i = threadIdx.x; i < a.half; i += kThreads) {
    const float angle = static_cast<float>(position) * frequencies.at[i];
    double sine, cosine;
    sincos(double{angle}, &sine, &cosine);
    cosines[i] = static_cast<float>(cosine) * a.cosine_scale;
    sines[i] = static_cast<float>(sine) * a.sine_scale;
  }
  __syncthreads();
  T* const row =
      a.x + blockIdx.y * a.sample_stride + blockIdx.x * a.time_stride;
  const int packs = (a.half + k - 1) / k;
  for (int at = threadIdx.x; at < a.heads * packs; at += kThreads) {
    const int i = at % packs * k, count = a.half - i;
    T* const first = row + at / packs * a.width + i;
    T* const second = first + a.half;
    float u[k], v[k];
    Load(first, count, a.aligned, u);
    Load(second, count, a.aligned, v);
#pragma unroll
    for (int j = 0; j < k; ++j) {
      const float c = j < count ? cosines[i + j] : 0;
      const float s = j < count ? sines[i + j] : 0;
      const float turned = u[j] * c - v[j] * s;
      v[j] = v[j] * c + u[j] * s;
      u[j] = turned;
    }
    Store(first, count, a.aligned, u);
    Store(second, count, a.aligned, v);
  }
}

}  // namespace

void Rotary(Device& device, const RotaryArgs& args) {
  if (RefusesDocuments(device, args.documents.defined())) return;
  const Tensor& x = args.x;
  const int64_t width = x.columns() / args.heads;
  const int64_t half = RotaryPairs(args);
  CHECK_LE(half, kHalfMax) << "rotary of " << 2 * half << " columns of a head";
  Frequencies frequencies{};
  for (int64_t i = 0; i < half; ++i) {
    frequencies.at[i] = static_cast<float>(args.inverse_frequencies[i]);
  }
  const float scale = static_cast<float>(args.scale);
  WithActivationType(x.dtype(), [&]<typename T>() {
    T* data = x.data<T>();
    const RawRotary<T> raw = {
        .x = data,
        .sample_stride = x.stride(0),
        .time_stride = x.stride(1),
        .heads = args.heads,
        .half = static_cast<int>(half),
        .width = width,
        .first_position = args.first_position,
        .cosine_scale = scale,
        .sine_scale = args.inverse ? -scale : scale,
        .aligned = AlignedRows<kPack<T>>(x.stride(0), data) &&
                   AlignedRows<kPack<T>>(x.stride(1), data) &&
                   half % kPack<T> == 0 && width % kPack<T> == 0};
    Launch(CudaOf(device), RotaryKernel<T>,
           {.grid = dim3(static_cast<unsigned>(x.dim(1)),
                         static_cast<unsigned>(x.dim(0))),
            .block = dim3(kThreads)},
           raw, frequencies);
  });
}

}  // namespace troupe::cuda
