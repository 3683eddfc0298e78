#include <cmath>

#include "ops/cross_entropy.h"
#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/report.h"
#include "ops/cuda/scratch.h"

namespace troupe::cuda {
namespace {

// kBlocks fill a multiprocessor: the rows that all of them work on, of
// 50,000 narrow logits, are then in the L2 cache of 50 MB when they are read
// again.
constexpr int kThreads = 768, kBlocks = 2;
constexpr float kNothing = -INFINITY;

// Of some logits: the largest, and the sum of e^(logit - largest). Two of them
// join into that of both (Milakov and Gimelshein, 1805.02867), in the order
// that the callers fix.
struct SoftmaxSum {
  float largest = kNothing;
  float sum = 0;

  __device__ void Join(float other_largest, float other_sum) {
    const float top = fmaxf(largest, other_largest);
    // Equal also where both are still nothing, whose difference is no number.
    const float mine = largest == top ? 1.0f : __expf(largest - top);
    const float theirs =
        other_largest == top ? 1.0f : __expf(other_largest - top);
    sum = sum * mine + other_sum * theirs;
    largest = top;
  }
  __device__ void JoinLanes() {
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      Join(__shfl_xor_sync(kAllLanes, largest, distance),
           __shfl_xor_sync(kAllLanes, sum, distance));
    }
  }
};

// Of all threads; the same in each.
__device__ SoftmaxSum JoinBlock(SoftmaxSum mine) {
  __shared__ float largest[kWarp], sums[kWarp];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  mine.JoinLanes();
  if (lane == 0) {
    largest[warp] = mine.largest;
    sums[warp] = mine.sum;
  }
  __syncthreads();
  SoftmaxSum all;
  if (lane < kThreads / kWarp) all = {largest[lane], sums[lane]};
  all.JoinLanes();
  return all;
}

// The logits and targets of a call, and which of the vocabulary's columns they
// are.
template <typename T>
struct RawLogits {
  T* logits;
  int64_t stride, width;  // of a row, padding included
  int64_t first_column, columns, vocabulary;
  const int32_t* targets;
  bool aligned;
  Fault* fault;
};

struct RawLosses {
  double* row_losses;  // or null, where another rank counts
  float* losses;       // or null
  const float*
      parts;  // [ranks, rows, 3], or null: the logits are all there are
  int64_t ranks;
  bool gradient;
  float gradient_scale;
};

// run(column, count): the first n columns of a row, of which a thread takes
// kPack<T> at a time.
template <typename T, typename Run>
__device__ inline void ForColumns(int64_t n, const Run& run) {
  constexpr int k = kPack<T>;
  for (int64_t i = int64_t{threadIdx.x} * k; i < n; i += kThreads * k) {
    run(i, n - i);
  }
}

// Reports a target that cannot be, and takes it for one to be ignored.
template <typename T>
__device__ int32_t CheckedTarget(const RawLogits<T>& a) {
  const int32_t target = a.targets[blockIdx.x];
  if (target >= -1 && target < a.vocabulary) return target;
  if (threadIdx.x == 0) {
    Report(a.fault, {.kind = FaultKind::kTarget,
                     .value = target,
                     .index = blockIdx.x,
                     .limit = a.vocabulary});
  }
  return -1;
}

// The logit of the row's target, 0 where it is not among the columns here.
template <typename T>
__device__ float AtTarget(const RawLogits<T>& a, const T* row, int32_t target) {
  const int64_t at = target - a.first_column;
  const bool here = target >= 0 && at >= 0 && at < a.columns;
  return here ? FromElement(row[at]) : 0;
}

// Of the columns here; the same in each thread.
template <typename T>
__device__ SoftmaxSum OfColumns(const RawLogits<T>& a, const T* row) {
  constexpr int k = kPack<T>;
  SoftmaxSum mine;
  ForColumns<T>(a.columns, [&](int64_t i, int64_t count) {
    float x[k];
    Load(row + i, count, a.aligned, x);
    float top = x[0];
#pragma unroll
    for (int j = 1; j < k; ++j) top = j < count ? fmaxf(top, x[j]) : top;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < k; ++j) sum += j < count ? __expf(x[j] - top) : 0;
    mine.Join(top, sum);
  });
  return JoinBlock(mine);
}

// Of all ranks' columns, joined in their order, so that all of them find the
// same; the same in each thread.
__device__ SoftmaxSum OfParts(const RawLosses& losses, float* at_target) {
  SoftmaxSum all;
  *at_target = 0;
  for (int64_t rank = 0; rank < losses.ranks; ++rank) {
    const float* const part =
        losses.parts + (rank * gridDim.x + blockIdx.x) * 3;
    all.Join(part[0], part[1]);
    *at_target += part[2];
  }
  return all;
}

// A row whose target is ignored.
template <typename T>
__device__ void SkipRow(const RawLogits<T>& a, const RawLosses& losses,
                        T* row) {
  if (losses.gradient) {
    ForColumns<T>(a.width, [&](int64_t i, int64_t count) {
      const float zeros[kPack<T>] = {};
      Store(row + i, count, a.aligned, zeros);
    });
  }
  if (threadIdx.x != 0 || losses.row_losses == nullptr) return;
  losses.row_losses[blockIdx.x] = 0;
  if (losses.losses != nullptr) losses.losses[blockIdx.x] = 0;
}

// One block a row, which it reads once for the loss, where the parts do not say
// it, and once more, mostly from the cache, for the gradient.
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    CrossEntropyKernel(RawLogits<T> a, RawLosses losses) {
  constexpr int k = kPack<T>;
  T* const row = a.logits + blockIdx.x * a.stride;
  const int32_t target = CheckedTarget(a);
  if (target == -1) return SkipRow(a, losses, row);
  float at_target = 0;
  SoftmaxSum all;
  if (losses.parts == nullptr) {
    at_target = AtTarget(a, row, target);  // before the barrier of OfColumns
    all = OfColumns(a, row);
  } else {
    all = OfParts(losses, &at_target);
  }
  if (losses.gradient) {
    const float scale = losses.gradient_scale / all.sum;
    const int64_t at = target - a.first_column;
    ForColumns<T>(a.width, [&](int64_t i, int64_t count) {
      float x[k];
      Load(row + i, count, a.aligned, x);
#pragma unroll
      for (int j = 0; j < k; ++j) {
        x[j] = __expf(x[j] - all.largest) * scale;
        if (i + j == at) x[j] -= losses.gradient_scale;
        if (i + j >= a.columns) x[j] = 0;
      }
      Store(row + i, count, a.aligned, x);
    });
  }
  if (threadIdx.x != 0 || losses.row_losses == nullptr) return;
  const double loss = log(double{all.sum}) + (double{all.largest} - at_target);
  losses.row_losses[blockIdx.x] = loss;
  if (losses.losses != nullptr) {
    losses.losses[blockIdx.x] = static_cast<float>(loss);
  }
}

// One block a row.
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocks)
    CrossEntropyPartsKernel(RawLogits<T> a, float* parts) {
  const T* const row = a.logits + blockIdx.x * a.stride;
  const int32_t target = CheckedTarget(a);
  const SoftmaxSum mine = OfColumns(a, row);
  if (threadIdx.x != 0) return;
  float* const part = parts + int64_t{blockIdx.x} * 3;
  part[0] = mine.largest;
  part[1] = mine.sum;
  part[2] = AtTarget(a, row, target);
}

// One block: sums of every kThreads-th row, joined in order.
__global__ void AddLossesKernel(const double* row_losses,
                                const int32_t* targets, int64_t rows,
                                double* loss_sum, double* count) {
  double sum = 0, counted = 0;
  for (int64_t row = threadIdx.x; row < rows; row += kThreads) {
    sum += row_losses[row];
    counted += targets[row] != -1;
  }
  sum = BlockSum(sum);
  counted = BlockSum(counted);
  if (threadIdx.x != 0) return;
  *loss_sum += sum;
  if (count != nullptr) *count += counted;
}

// One block a sequence: sums of every kThreads-th of its rows, joined in order.
// `first`: of the first sequence's rows, the one that is row 0.
__global__ void AddSequencesKernel(const double* row_losses,
                                   const int32_t* targets, int64_t rows,
                                   int64_t first, int64_t tokens,
                                   double* losses, double* counts) {
  const int64_t sequence = blockIdx.x;
  const int64_t begin = sequence == 0 ? 0 : sequence * tokens - first;
  const int64_t behind = (sequence + 1) * tokens - first;
  const int64_t end = tokens == 0 || behind > rows ? rows : behind;
  double sum = 0, counted = 0;
  for (int64_t row = begin + threadIdx.x; row < end; row += kThreads) {
    sum += row_losses[row];
    counted += targets[row] != -1;
  }
  sum = BlockSum(sum);
  counted = BlockSum(counted);
  if (threadIdx.x != 0) return;
  losses[sequence] += sum;
  counts[sequence] += counted;
}

template <typename T, typename Args>
RawLogits<T> ToRaw(CudaDevice& cuda, const Args& args) {
  T* logits = args.logits.template data<T>();
  const int64_t stride = args.logits.RowStride();
  return {.logits = logits,
          .stride = stride,
          .width = args.logits.columns(),
          .first_column = args.first_column,
          .columns = args.columns,
          .vocabulary = args.vocabulary,
          .targets = args.targets.template data<int32_t>(),
          .aligned = AlignedRows<kPack<T>>(stride, logits),
          .fault = FaultOf(cuda)};
}

LaunchShape RowShape(int64_t rows) {
  return {.grid = dim3(static_cast<unsigned>(rows)), .block = dim3(kThreads)};
}

}  // namespace

void CrossEntropy(Device& device, const CrossEntropyArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const int64_t rows = args.logits.rows();
  const Scratch row_losses(cuda, rows * sizeof(double));
  const RawLosses losses = {
      .row_losses = args.counts ? row_losses.as<double>() : nullptr,
      .losses = DataFrom<float>(args.losses, 0),
      .parts = DataFrom<float>(args.parts, 0),
      .ranks = args.parts.defined() ? args.parts.dim(0) : 0,
      .gradient = args.gradient,
      .gradient_scale = args.gradient_scale};
  WithActivationType(args.logits.dtype(), [&]<typename T>() {
    Launch(cuda, CrossEntropyKernel<T>, RowShape(rows), ToRaw<T>(cuda, args),
           losses);
  });
  if (!args.counts) return;
  Launch(cuda, AddLossesKernel, {.block = dim3(kThreads)},
         row_losses.as<double>(), args.targets.data<int32_t>(), rows,
         args.loss_sum.data<double>(), DataFrom<double>(args.count, 0));
  if (!args.sequence_losses.defined()) return;
  const int64_t tokens = args.sequences.tokens;
  Launch(cuda, AddSequencesKernel, RowShape(args.sequence_losses.elements()),
         row_losses.as<double>(), args.targets.data<int32_t>(), rows,
         tokens == 0 ? 0 : args.sequences.first % tokens, tokens,
         args.sequence_losses.data<double>(),
         args.sequence_counts.data<double>());
}

void CrossEntropyParts(Device& device, const CrossEntropyPartsArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  WithActivationType(args.logits.dtype(), [&]<typename T>() {
    Launch(cuda, CrossEntropyPartsKernel<T>, RowShape(args.logits.rows()),
           ToRaw<T>(cuda, args), args.parts.data<float>());
  });
}

}  // namespace troupe::cuda
