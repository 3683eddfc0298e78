#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/finish_rows.h"
#include "ops/cuda/gelu_math.h"
#include "ops/cuda/launch.h"

namespace troupe::cuda {
namespace {

// T is the type of the bias, C of the rest. Null: not there.
template <typename T, typename C>
struct Rows {
  const float* sums;
  const T* bias;
  C* pre_activation;
  C* c;
  int64_t sums_stride;
  int64_t c_stride;
  int64_t columns;
  bool gelu;
};

// A block for each row.
template <typename T, typename C>
__global__ void FinishRowsKernel(Rows<T, C> rows) {
  const int64_t row = blockIdx.x;
  for (int64_t j = threadIdx.x; j < rows.columns; j += blockDim.x) {
    float value = rows.sums[row * rows.sums_stride + j];
    if (rows.bias != nullptr) value += FromElement(rows.bias[j]);
    C stored = Rounded<C>(value);
    if (rows.gelu) {
      if (rows.pre_activation != nullptr) {
        rows.pre_activation[row * rows.columns + j] = stored;
      }
      stored = Rounded<C>(GeluOf(FromElement(stored)));
    }
    rows.c[row * rows.c_stride + j] = stored;
  }
}

template <typename T, typename C>
void Enqueue(CudaDevice& device, const MatMulArgs& args, const Tensor& sums) {
  const Rows<T, C> rows = {
      .sums = sums.data<float>(),
      .bias = DataFrom<T>(args.bias, 0),
      .pre_activation = DataFrom<C>(args.pre_activation, 0),
      .c = args.c.data<C>(),
      .sums_stride = sums.RowStride(),
      .c_stride = args.c.RowStride(),
      .columns = args.c.columns(),
      .gelu = args.activation == Activation::kGelu};
  constexpr int kPerThread = 4;
  Launch(device, FinishRowsKernel<T, C>,
         {.grid = static_cast<unsigned>(args.c.rows()),
          .block = ThreadsForRow(rows.columns, kPerThread)},
         rows);
}

}  // namespace

void FinishRows(CudaDevice& device, const MatMulArgs& args,
                const Tensor& sums) {
  WithActivationType(args.a.dtype(), [&]<typename T>() {
    if (args.c.dtype() == DType::kF32) {
      Enqueue<T, float>(device, args, sums);
    } else {
      Enqueue<T, T>(device, args, sums);
    }
  });
}

}  // namespace troupe::cuda
