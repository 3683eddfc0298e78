#include "ops/cuda/column_sums.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/norm_rows.h"
#include "ops/cuda/norm_rows_backward.h"
#include "ops/rms_norm.h"

namespace troupe::cuda {
namespace {

template <typename T>
struct RmsNormWeightTerm {
  static constexpr int k = kPack<T>;

  const T *dy, *s;
  const float* rstd;
  RowStarts starts;
  bool aligned;

  __device__ void operator()(int64_t row, int64_t column, int64_t count,
                             float (&values)[1][k]) const {
    float s_values[k];
    Load(s + starts(row) + column, count, aligned, s_values);
    Load(dy + starts(row) + column, count, aligned, values[0]);
#pragma unroll
    for (int i = 0; i < k; ++i) values[0][i] *= s_values[i] * rstd[row];
  }
};

RowStarts StartsOf(const Tensor& tensor) {
  const RowGroups groups = RowGroupsOf(tensor);
  return {tensor.columns(), groups.rows, groups.stride};
}

}  // namespace

void RmsNorm(Device& device, const RmsNormArgs& args) {
  const int64_t n = args.x.columns();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    RawNorm<T> raw = {.n = n,
                      .starts = StartsOf(args.x),
                      .x = args.x.data<T>(),
                      .residual = DataFrom<T>(args.residual, 0),
                      .sum = DataFrom<T>(args.sum, 0),
                      .dropout = ToRaw(args.dropout),
                      .gamma = args.gamma.data<T>(),
                      .epsilon = args.epsilon,
                      .y = args.y.data<T>(),
                      .rstd = DataFrom<float>(args.rstd, 0)};
    raw.aligned = AlignedRows<kPack<T>>(n, raw.x, raw.residual, raw.sum,
                                        raw.gamma, raw.y) &&
                  raw.starts.group_stride % kPack<T> == 0;
    Launch(CudaOf(device), NormKernel<T, false>,
           NormShape<T>(args.x.rows(), n, 1), raw);
  });
}

void RmsNormBackwardInput(Device& device,
                          const RmsNormBackwardInputArgs& args) {
  const int64_t n = args.dy.columns();
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    RawNormBackward<T> raw = {
        .n = n,
        .starts = StartsOf(args.dy),
        .dy = args.dy.data<T>(),
        .s = args.s.data<T>(),
        .gamma = args.gamma.data<T>(),
        .rstd = args.rstd.data<float>(),
        .residual_gradient = DataFrom<T>(args.residual_gradient, 0),
        .dx = args.dx.data<T>()};
    raw.aligned = AlignedRows<kPack<T>>(n, raw.dy, raw.s, raw.gamma,
                                        raw.residual_gradient, raw.dx) &&
                  raw.starts.group_stride % kPack<T> == 0;
    Launch(CudaOf(device), NormBackwardKernel<T, false>,
           NormShape<T>(args.dy.rows(), n, 2), raw);
  });
}

void RmsNormBackwardWeight(Device& device,
                           const RmsNormBackwardWeightArgs& args) {
  const int64_t n = args.dy.columns();
  WithTypes(args.dy, args.dgamma, [&]<typename T, typename G>() {
    RmsNormWeightTerm<T> term = {.dy = args.dy.data<T>(),
                                 .s = args.s.data<T>(),
                                 .rstd = args.rstd.data<float>(),
                                 .starts = StartsOf(args.dy)};
    term.aligned = AlignedRows<kPack<T>>(n, term.dy, term.s) &&
                   term.starts.group_stride % kPack<T> == 0;
    SumColumns<kPack<T>, 1, G>(CudaOf(device), args.dy.rows(), n, term,
                               {args.dgamma.data<G>()});
  });
}

}  // namespace troupe::cuda
