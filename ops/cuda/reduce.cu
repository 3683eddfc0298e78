#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/scratch.h"
#include "ops/reduce.h"

namespace troupe::cuda {
namespace {

constexpr int n = kPack<float>;
constexpr int kThreads = 256;
constexpr int kPacksOfThread = 8;
constexpr int64_t kPiece = int64_t{kThreads} * kPacksOfThread * n;

// One block a piece: f32 within a thread, f64 across.
__global__ void PieceSquaresKernel(const float* x, int64_t count, bool aligned,
                                   double* sums) {
  const int64_t start = blockIdx.x * kPiece;
  float sum = 0;
#pragma unroll
  for (int pack = 0; pack < kPacksOfThread; ++pack) {
    const int64_t at = start + (int64_t{pack} * kThreads + threadIdx.x) * n;
    float values[n];
    Load(x + at, count - at, aligned, values);
#pragma unroll
    for (int i = 0; i < n; ++i) sum += values[i] * values[i];
  }
  const double total = BlockSum(double{sum});
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// One block.
__global__ void AddSumsKernel(const double* sums, int64_t count,
                              double* result) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < count; i += kThreads) sum += sums[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) *result += sum;
}

__global__ void AddKernel(const float* x, float* y, int64_t count, bool aligned,
                          float alpha) {
  const int64_t begin = FlatBegin(n);
  float from[n], to[n];
  Load(x + begin, count - begin, aligned, from);
  Load(y + begin, count - begin, aligned, to);
#pragma unroll
  for (int i = 0; i < n; ++i) to[i] += alpha * from[i];
  Store(y + begin, count - begin, aligned, to);
}

__global__ void ScaleKernel(float* x, int64_t count, bool aligned,
                            float alpha) {
  const int64_t begin = FlatBegin(n);
  float values[n];
  Load(x + begin, count - begin, aligned, values);
#pragma unroll
  for (float& v : values) v *= alpha;
  Store(x + begin, count - begin, aligned, values);
}

template <typename T>
__global__ void FillKernel(T* x, int64_t count, bool aligned, float value) {
  constexpr int k = kPack<T>;
  const int64_t begin = FlatBegin(k);
  float values[k];
#pragma unroll
  for (float& v : values) v = value;
  Store(x + begin, count - begin, aligned, values);
}

}  // namespace

void SumOfSquares(Device& device, const SumOfSquaresArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const float* x = args.x.data<float>();
  const int64_t count = args.x.elements();
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  const Scratch sums(cuda, pieces * sizeof(double));
  Launch(cuda, PieceSquaresKernel,
         {.grid = dim3(static_cast<unsigned>(pieces)), .block = dim3(kThreads)},
         x, count, Aligned<n>(x), sums.as<double>());
  Launch(cuda, AddSumsKernel, {.block = dim3(kThreads)}, sums.as<double>(),
         pieces, args.result.data<double>());
}

void Add(Device& device, const AddArgs& args) {
  const float* x = args.x.data<float>();
  float* y = args.y.data<float>();
  const int64_t count = args.x.elements();
  Launch(CudaOf(device), AddKernel, FlatShape(count, n), x, y, count,
         Aligned<n>(x, y), args.alpha);
}

void Scale(Device& device, const ScaleArgs& args) {
  float* x = args.x.data<float>();
  const int64_t count = args.x.elements();
  Launch(CudaOf(device), ScaleKernel, FlatShape(count, n), x, count,
         Aligned<n>(x), args.alpha);
}

void Fill(Device& device, const FillArgs& args) {
  const int64_t count = args.x.elements();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    T* x = args.x.data<T>();
    Launch(CudaOf(device), FillKernel<T>, FlatShape(count, kPack<T>), x, count,
           Aligned<kPack<T>>(x), args.value);
  });
}

}  // namespace troupe::cuda
