#include "ops/cuda/dropout_mask.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/dropout.h"

namespace troupe::cuda {
namespace {

// The tensors' rows, each by `threads` threads.
struct DropoutRows {
  int64_t rows, columns;
  int64_t row_stride;  // in the mask
  int64_t threads;
};

template <typename T>
__global__ void DropoutKernel(const T* x, const T* residual, T* y,
                              DropoutRows rows, bool aligned,
                              RawDropout dropout) {
  constexpr int n = kPack<T>;
  int64_t column = FlatBegin(n);
  int64_t row = 0;
  if (rows.rows > 1) {
    row = column / n / rows.threads;
    column -= row * rows.threads * n;
  }
  if (row >= rows.rows || column >= rows.columns) return;
  const int64_t begin = row * rows.columns + column;
  const int64_t count = rows.columns - column;
  float values[n];
  Load(x + begin, count, aligned, values);
  if (dropout.threshold != 0) {
    float factors[n];
    DropoutFactors(dropout, row * rows.row_stride + column, factors);
#pragma unroll
    for (int i = 0; i < n; ++i) values[i] *= factors[i];
  }
  if (residual != nullptr) {
    float other[n];
    Load(residual + begin, count, aligned, other);
#pragma unroll
    for (int i = 0; i < n; ++i) values[i] += other[i];
  }
  Store(y + begin, count, aligned, values);
}

}  // namespace

void ApplyDropout(Device& device, const ApplyDropoutArgs& args) {
  const DropoutMask& mask = args.mask;
  // Rows that lie in the mask as in the tensors are one.
  const bool whole = mask.columns == 0 || mask.columns == mask.row_stride;
  const int64_t rows = whole ? 1 : args.x.rows();
  const int64_t columns = whole ? args.x.elements() : mask.columns;
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    const T* x = args.x.data<T>();
    const T* residual = DataFrom<T>(args.residual, 0);
    T* y = args.y.data<T>();
    constexpr int n = kPack<T>;
    const int64_t threads = (columns + n - 1) / n;
    const bool aligned =
        (rows == 1 || columns % n == 0) && Aligned<n>(x, residual, y);
    Launch(CudaOf(device), DropoutKernel<T>, FlatShape(rows * threads * n, n),
           x, residual, y,
           DropoutRows{.rows = rows,
                       .columns = columns,
                       .row_stride = mask.row_stride,
                       .threads = threads},
           aligned, ToRaw(mask));
  });
}

}  // namespace troupe::cuda
