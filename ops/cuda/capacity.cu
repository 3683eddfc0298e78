// A thread has an expert in a sequence, and walks over the sequence's choices
// in the order in which places are given.
#include "ops/capacity.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"

namespace troupe::cuda {
namespace {

struct RawCapacity {
  const int32_t* choices;
  const float* gates;
  int64_t tokens, k, experts, places;
  float* kept;
  double* dropped;  // or null
};

__global__ void CapacityKernel(RawCapacity a) {
  const int64_t expert = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (expert >= a.experts) return;
  const int64_t first = int64_t{blockIdx.y} * a.tokens * a.k;
  int64_t taken = 0, dropped = 0;
  for (int64_t j = 0; j < a.k; ++j) {
    for (int64_t at = first + j; at < first + a.tokens * a.k; at += a.k) {
      if (a.choices[at] != expert) continue;
      const bool fits = taken++ < a.places;
      a.kept[at] = fits ? a.gates[at] : 0.0f;
      dropped += !fits;
    }
  }
  if (a.dropped != nullptr && dropped > 0) {
    atomicAdd(a.dropped, static_cast<double>(dropped));
  }
}

__global__ void CapacityBackwardKernel(const float* kept, const float* d_kept,
                                       float* d_gates, int64_t count) {
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at < count) d_gates[at] = kept[at] == 0 ? 0.0f : d_kept[at];
}

}  // namespace

void Capacity(Device& device, const CapacityArgs& args) {
  constexpr int kThreads = 64;
  const int64_t sequences = args.choices.rows() / args.tokens;
  Launch(CudaOf(device), CapacityKernel,
         {.grid = dim3(
              static_cast<unsigned>((args.experts + kThreads - 1) / kThreads),
              static_cast<unsigned>(sequences)),
          .block = dim3(kThreads)},
         {.choices = args.choices.data<int32_t>(),
          .gates = args.gates.data<float>(),
          .tokens = args.tokens,
          .k = args.choices.columns(),
          .experts = args.experts,
          .places = args.places,
          .kept = args.kept.data<float>(),
          .dropped =
              args.dropped.defined() ? args.dropped.data<double>() : nullptr});
}

void CapacityBackward(Device& device, const CapacityBackwardArgs& args) {
  const int64_t count = args.kept.elements();
  Launch(CudaOf(device), CapacityBackwardKernel, FlatShape(count, 1),
         args.kept.data<float>(), args.d_kept.data<float>(),
         args.d_gates.data<float>(), count);
}

}  // namespace troupe::cuda
