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
  int64_t rows, k, experts, places;
  int64_t first, tokens;  // TokenRows
  const float* counts;    // or null
  int64_t ranks, rank, rows_of_counts;
  float* kept;
  double* dropped;  // or null
};

// Places of the expert that are taken before this rank's j-th choices.
__device__ int64_t Taken(const RawCapacity& a, int64_t sequence, int64_t j,
                         int64_t expert) {
  int64_t taken = 0;
  for (int64_t rank = 0; rank < a.ranks; ++rank) {
    const int64_t row = rank * a.rows_of_counts + sequence * a.k;
    const int64_t choices = rank < a.rank ? j + 1 : j;
    for (int64_t c = 0; c < choices; ++c) {
      taken += static_cast<int64_t>(
          a.counts[(row + c) * a.experts + expert]);
    }
  }
  return taken;
}

__global__ void CapacityKernel(RawCapacity a) {
  const int64_t expert = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (expert >= a.experts) return;
  // The rank's first sequence need not be the micro-batch's.
  const int64_t sequence = a.first / a.tokens + blockIdx.y;
  const int64_t before = sequence * a.tokens - a.first;
  const int64_t begin = (before > 0 ? before : 0) * a.k;
  const int64_t behind = before + a.tokens;
  const int64_t end = (behind < a.rows ? behind : a.rows) * a.k;
  int64_t taken = 0, dropped = 0;
  for (int64_t j = 0; j < a.k; ++j) {
    if (a.counts != nullptr) taken = Taken(a, sequence, j, expert);
    for (int64_t at = begin + j; at < end; at += a.k) {
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
  const int64_t rows = args.choices.rows();
  if (rows == 0) return;
  const TokenRows& of = args.rows;
  const int64_t sequences = of.Of(rows - 1) - of.Of(0) + 1;
  const bool cut = args.counts.defined();
  Launch(CudaOf(device), CapacityKernel,
         {.grid = dim3(
              static_cast<unsigned>((args.experts + kThreads - 1) / kThreads),
              static_cast<unsigned>(sequences)),
          .block = dim3(kThreads)},
         {.choices = args.choices.data<int32_t>(),
          .gates = args.gates.data<float>(),
          .rows = rows,
          .k = args.choices.columns(),
          .experts = args.experts,
          .places = args.places,
          .first = of.first,
          .tokens = of.tokens,
          .counts = cut ? args.counts.data<float>() : nullptr,
          .ranks = cut ? args.counts.dim(0) : 0,
          .rank = args.rank,
          .rows_of_counts = cut ? args.counts.dim(1) : 0,
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
