// Rows of two strided tensors of one shape, for kernels of a row at a time.
#ifndef TROUPE_OPS_CUDA_ROW_PLACES_H_
#define TROUPE_OPS_CUDA_ROW_PLACES_H_

#include <array>
#include <cstdint>

#include "ops/cuda/launch.h"
#include "ops/tensor.h"

namespace troupe::cuda {

constexpr int kLeadingDimsMax = Tensor::kRankMax - 1;

// Where the rows of x and y lie: all dims but the last, outermost first.
struct RowPlaces {
  int dims_count;
  std::array<int64_t, kLeadingDimsMax> dims, x_strides, y_strides;
};

inline RowPlaces RowPlacesOf(const Tensor& x, const Tensor& y) {
  RowPlaces places{.dims_count = x.rank() - 1};
  for (int dim = 0; dim < places.dims_count; ++dim) {
    places.dims[dim] = x.dim(dim);
    places.x_strides[dim] = x.stride(dim);
    places.y_strides[dim] = y.stride(dim);
  }
  return places;
}

// Whether n elements from any row's beginning on may be accessed at once where
// they may from x's and y's.
inline bool KeepAligned(const RowPlaces& places, int n) {
  for (int dim = 0; dim < places.dims_count; ++dim) {
    if (places.x_strides[dim] % n != 0 || places.y_strides[dim] % n != 0) {
      return false;
    }
  }
  return true;
}

// From the tensors' first elements to those of the row.
template <typename X, typename Y>
__device__ inline void GoToRow(const RowPlaces& places, int64_t row,
                               const X*& x, Y*& y) {
#pragma unroll  // so that the places stay in the kernel's parameters
  for (int dim = kLeadingDimsMax - 1; dim >= 0; --dim) {
    if (dim >= places.dims_count) continue;
    const int64_t index = row % places.dims[dim];
    row /= places.dims[dim];
    x += index * places.x_strides[dim];
    y += index * places.y_strides[dim];
  }
}

// A block: kRowsBelow rows, each by kThreadsBeside threads.
constexpr int kThreadsBeside = 32, kRowsBelow = 8;

inline LaunchShape RowsShape(int64_t rows) {
  return {
      .grid = dim3(static_cast<unsigned>((rows + kRowsBelow - 1) / kRowsBelow)),
      .block = dim3(kThreadsBeside, kRowsBelow)};
}
__device__ inline int64_t RowOfThread() {
  return int64_t{blockIdx.x} * kRowsBelow + threadIdx.y;
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ROW_PLACES_H_
