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

constexpr int kThreads = 512;
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

template <typename T>
struct RawCrossEntropy {
  T* logits;
  int64_t stride, n;
  const int32_t* targets;
  double* row_losses;
  float* losses;  // or null
  bool gradient, aligned;
  float gradient_scale;
  Fault* fault;
};

// run(column, count): all columns of a thread, kPack<T> at a time.
template <typename T, typename Run>
__device__ inline void ForColumns(int64_t n, const Run& run) {
  constexpr int k = kPack<T>;
  for (int64_t i = int64_t{threadIdx.x} * k; i < n; i += kThreads * k) {
    run(i, n - i);
  }
}

// A row whose target is ignored, or cannot be.
template <typename T>
__device__ void SkipRow(const RawCrossEntropy<T>& a, T* row) {
  if (a.gradient) {
    ForColumns<T>(a.n, [&](int64_t i, int64_t count) {
      const float zeros[kPack<T>] = {};
      Store(row + i, count, a.aligned, zeros);
    });
  }
  if (threadIdx.x != 0) return;
  a.row_losses[blockIdx.x] = 0;
  if (a.losses != nullptr) a.losses[blockIdx.x] = 0;
}

// One block a row, which it reads once for the loss and once more, mostly from
// the cache, for the gradient.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    CrossEntropyKernel(RawCrossEntropy<T> a) {
  constexpr int k = kPack<T>;
  T* const row = a.logits + blockIdx.x * a.stride;
  const int32_t target = a.targets[blockIdx.x];
  if (target < 0 || target >= a.n) {
    if (target != -1 && threadIdx.x == 0) {
      Report(a.fault, {.kind = FaultKind::kTarget,
                       .value = target,
                       .index = blockIdx.x,
                       .limit = a.n});
    }
    return SkipRow(a, row);
  }
  const float at_target = FromElement(row[target]);
  SoftmaxSum mine;
  ForColumns<T>(a.n, [&](int64_t i, int64_t count) {
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
  const SoftmaxSum all = JoinBlock(mine);
  if (a.gradient) {
    const float scale = a.gradient_scale / all.sum;
    ForColumns<T>(a.n, [&](int64_t i, int64_t count) {
      float x[k];
      Load(row + i, count, a.aligned, x);
#pragma unroll
      for (int j = 0; j < k; ++j) {
        x[j] = __expf(x[j] - all.largest) * scale;
        if (i + j == target) x[j] -= a.gradient_scale;
      }
      Store(row + i, count, a.aligned, x);
    });
  }
  if (threadIdx.x != 0) return;
  const double loss = log(double{all.sum}) + (double{all.largest} - at_target);
  a.row_losses[blockIdx.x] = loss;
  if (a.losses != nullptr) a.losses[blockIdx.x] = static_cast<float>(loss);
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

}  // namespace

void CrossEntropy(Device& device, const CrossEntropyArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const int64_t rows = args.logits.rows(), n = args.logits.columns();
  const int32_t* targets = args.targets.data<int32_t>();
  const Scratch row_losses(cuda, rows * sizeof(double));
  WithActivationType(args.logits.dtype(), [&]<typename T>() {
    T* logits = args.logits.data<T>();
    const int64_t stride = args.logits.RowStride();
    const RawCrossEntropy<T> raw = {
        .logits = logits,
        .stride = stride,
        .n = n,
        .targets = targets,
        .row_losses = row_losses.as<double>(),
        .losses = DataFrom<float>(args.losses, 0),
        .gradient = args.gradient,
        .aligned = AlignedRows<kPack<T>>(stride, logits),
        .gradient_scale = args.gradient_scale,
        .fault = FaultOf(cuda)};
    Launch(cuda, CrossEntropyKernel<T>,
           {.grid = dim3(static_cast<unsigned>(rows)), .block = dim3(kThreads)},
           raw);
  });
  Launch(cuda, AddLossesKernel, {.block = dim3(kThreads)},
         row_losses.as<double>(), targets, rows, args.loss_sum.data<double>(),
         DataFrom<double>(args.count, 0));
}

}  // namespace troupe::cuda
