#include "ops/bias_gradient.h"
#include "ops/cuda/column_sums.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"

namespace troupe::cuda {
namespace {

template <typename T>
struct BiasTerm {
  static constexpr int n = kPack<T>;

  const T* dy;
  int64_t stride;
  bool aligned;

  __device__ void operator()(int64_t row, int64_t column, int64_t count,
                             float (&values)[1][n]) const {
    Load(dy + row * stride + column, count, aligned, values[0]);
  }
};

}  // namespace

void BiasGradient(Device& device, const BiasGradientArgs& args) {
  WithTypes(args.dy, args.db, [&]<typename T, typename G>() {
    const T* dy = args.dy.data<T>();
    const int64_t stride = args.dy.RowStride();
    const BiasTerm<T> term = {.dy = dy,
                              .stride = stride,
                              .aligned = AlignedRows<kPack<T>>(stride, dy)};
    SumColumns<kPack<T>, 1, G>(CudaOf(device), args.dy.rows(),
                               args.dy.columns(), term, {args.db.data<G>()});
  });
}

}  // namespace troupe::cuda
