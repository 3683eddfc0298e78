// The copy of ops/reduce.h: of whole rows where it can, with a cast where the
// dtypes differ.
#include <algorithm>
#include <type_traits>

#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/row_places.h"
#include "ops/reduce.h"

namespace troupe::cuda {
namespace {

constexpr int n = 4;  // elements of a thread

// Casts are exact to the bit also for NaN, unlike the GPU's instructions.
template <typename To, typename From>
__device__ inline To Moved(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else {
    return ToElement<To>(FromElement(value));
  }
}

// Up to n elements, all at once where that is possible.
template <typename From, typename To>
__device__ inline void MoveSome(const From* x, To* y, int64_t count,
                                bool aligned) {
  if (aligned && count >= n) {
    const auto from = *reinterpret_cast<const Elements<From, n>*>(x);
    Elements<To, n> to;
#pragma unroll
    for (int i = 0; i < n; ++i) to.at[i] = Moved<To>(from.at[i]);
    StoreWhole(y, to);
  } else {
    for (int i = 0; i < n && i < count; ++i) y[i] = Moved<To>(x[i]);
  }
}

template <typename From, typename To>
__global__ void CastKernel(const From* x, To* y, int64_t count, bool aligned) {
  const int64_t begin = FlatBegin(n);
  MoveSome(x + begin, y + begin, count - begin, aligned);
}

template <typename From, typename To>
__global__ void CopyRowsKernel(const From* x, To* y, RowPlaces places,
                               int64_t rows, int64_t columns, bool aligned) {
  const int64_t row = RowOfThread();
  if (row >= rows) return;
  GoToRow(places, row, x, y);
  for (int64_t i = int64_t{threadIdx.x} * n; i < columns;
       i += kThreadsBeside * n) {
    MoveSome(x + i, y + i, columns - i, aligned);
  }
}

template <typename From, typename To>
void Copy(CudaDevice& cuda, const CopyArgs& args) {
  const auto* x = static_cast<const From*>(args.x.raw());
  auto* y = static_cast<To*>(args.y.raw());
  const int64_t count = args.x.elements(), columns = args.x.columns();
  const bool aligned = Aligned<n>(x) && Aligned<n>(y);
  if (args.x.dense() && args.y.dense()) {
    return Launch(cuda, CastKernel<From, To>, FlatShape(count, n), x, y, count,
                  aligned);
  }
  const RowPlaces places = RowPlacesOf(args.x, args.y);
  const int64_t rows = columns == 0 ? 0 : count / columns;
  Launch(cuda, CopyRowsKernel<From, To>, RowsShape(rows), x, y, places, rows,
         columns, aligned && KeepAligned(places, n));
}

// One of the two dtypes is f32.
void CopyCast(CudaDevice& cuda, const CopyArgs& args) {
  const DType from = args.x.dtype(), to = args.y.dtype();
  CHECK(from == DType::kF32 || to == DType::kF32)
      << args.x.ShapeString() << " to " << args.y.ShapeString() << " on a GPU";
  WithActivationType(from == DType::kF32 ? to : from, [&]<typename Narrow>() {
    if (from == DType::kF32) {
      Copy<float, Narrow>(cuda, args);
    } else {
      Copy<Narrow, float>(cuda, args);
    }
  });
}

}  // namespace

void Copy(Device& device, const CopyArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const Tensor &x = args.x, &y = args.y;
  if (x.dtype() != y.dtype()) return CopyCast(cuda, args);
  if (x.dense() && y.dense()) {
    return CopyOn(cuda, y.raw(), x.raw(), x.bytes());
  }
  switch (DTypeBytes(x.dtype())) {
    case 2:
      return Copy<uint16_t, uint16_t>(cuda, args);
    case 4:
      return Copy<float, float>(cuda, args);  // whatever the bits mean
    default:
      return Copy<uint64_t, uint64_t>(cuda, args);
  }
}

}  // namespace troupe::cuda
