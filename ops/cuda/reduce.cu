#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/row_places.h"
#include "ops/cuda/scratch.h"
#include "ops/reduce.h"

namespace troupe::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kPacksOfThread = 8;
constexpr int64_t kPiecePacks = int64_t{kThreads} * kPacksOfThread;

// One block a piece: f32 within a thread, f64 across.
template <typename T>
__global__ void PieceSquaresKernel(const T* x, int64_t count, bool aligned,
                                   double* sums) {
  constexpr int k = kPack<T>;
  const int64_t start = blockIdx.x * kPiecePacks * k;
  float sum = 0;
#pragma unroll
  for (int pack = 0; pack < kPacksOfThread; ++pack) {
    const int64_t at = start + (int64_t{pack} * kThreads + threadIdx.x) * k;
    float values[k];
    Load(x + at, count - at, aligned, values);
#pragma unroll
    for (int i = 0; i < k; ++i) sum += values[i] * values[i];
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

template <typename T>
__device__ inline void AddSome(const T* x, T* y, int64_t count, bool aligned,
                               float alpha) {
  constexpr int k = kPack<T>;
  float from[k], to[k];
  Load(x, count, aligned, from);
  Load(y, count, aligned, to);
#pragma unroll
  for (int i = 0; i < k; ++i) to[i] += alpha * from[i];
  Store(y, count, aligned, to);
}

template <typename T>
__global__ void AddKernel(const T* x, T* y, int64_t count, bool aligned,
                          float alpha) {
  const int64_t begin = FlatBegin(kPack<T>);
  AddSome(x + begin, y + begin, count - begin, aligned, alpha);
}

template <typename T>
__global__ void AddRowsKernel(const T* x, T* y, RowPlaces places, int64_t rows,
                              int64_t columns, bool aligned, float alpha) {
  const int64_t row = RowOfThread();
  if (row >= rows) return;
  GoToRow(places, row, x, y);
  constexpr int k = kPack<T>;
  for (int64_t i = int64_t{threadIdx.x} * k; i < columns;
       i += kThreadsBeside * k) {
    AddSome(x + i, y + i, columns - i, aligned, alpha);
  }
}

template <typename T>
__global__ void ScaleKernel(T* x, int64_t count, bool aligned, float alpha) {
  constexpr int k = kPack<T>;
  const int64_t begin = FlatBegin(k);
  float values[k];
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
  const int64_t count = args.x.elements();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    const T* x = args.x.data<T>();
    constexpr int64_t kPiece = kPiecePacks * kPack<T>;
    const int64_t pieces = (count + kPiece - 1) / kPiece;
    const Scratch sums(cuda, pieces * sizeof(double));
    Launch(
        cuda, PieceSquaresKernel<T>,
        {.grid = dim3(static_cast<unsigned>(pieces)), .block = dim3(kThreads)},
        x, count, Aligned<kPack<T>>(x), sums.as<double>());
    Launch(cuda, AddSumsKernel, {.block = dim3(kThreads)}, sums.as<double>(),
           pieces, args.result.data<double>());
  });
}

void Add(Device& device, const AddArgs& args) {
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    constexpr int k = kPack<T>;
    const T* x = args.x.data<T>();
    T* y = args.y.data<T>();
    const int64_t count = args.x.elements(), columns = args.x.columns();
    if (args.x.dense() && args.y.dense()) {
      return Launch(CudaOf(device), AddKernel<T>, FlatShape(count, k), x, y,
                    count, Aligned<k>(x, y), args.alpha);
    }
    const RowPlaces places = RowPlacesOf(args.x, args.y);
    const int64_t rows = columns == 0 ? 0 : count / columns;
    Launch(CudaOf(device), AddRowsKernel<T>, RowsShape(rows), x, y, places,
           rows, columns, Aligned<k>(x, y) && KeepAligned(places, k),
           args.alpha);
  });
}

void Scale(Device& device, const ScaleArgs& args) {
  const int64_t count = args.x.elements();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    T* x = args.x.data<T>();
    Launch(CudaOf(device), ScaleKernel<T>, FlatShape(count, kPack<T>), x, count,
           Aligned<kPack<T>>(x), args.alpha);
  });
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
