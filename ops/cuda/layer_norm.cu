#include "ops/cuda/column_sums.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/norm_rows.h"
#include "ops/cuda/norm_rows_backward.h"
#include "ops/layer_norm.h"

namespace troupe::cuda {
namespace {

template <typename T>
struct LayerNormWeightTerm {
  static constexpr int k = kPack<T>;

  const T *dy, *s;
  const float *mean, *rstd;
  int64_t n;
  bool aligned;

  // values[0] of gamma, values[1] of beta.
  __device__ void operator()(int64_t row, int64_t column, int64_t count,
                             float (&values)[2][k]) const {
    float normed[k];
    Load(s + row * n + column, count, aligned, normed);
    Load(dy + row * n + column, count, aligned, values[1]);
#pragma unroll
    for (int i = 0; i < k; ++i) {
      values[0][i] = values[1][i] * ((normed[i] - mean[row]) * rstd[row]);
    }
  }
};

}  // namespace

void LayerNorm(Device& device, const LayerNormArgs& args) {
  const int64_t n = args.x.columns();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    RawNorm<T> raw = {.n = n,
                      .starts = DenseRows(n),
                      .x = args.x.data<T>(),
                      .residual = DataFrom<T>(args.residual, 0),
                      .sum = DataFrom<T>(args.sum, 0),
                      .dropout = ToRaw(args.dropout),
                      .gamma = args.gamma.data<T>(),
                      .beta = args.beta.data<T>(),
                      .epsilon = args.epsilon,
                      .y = args.y.data<T>(),
                      .mean = DataFrom<float>(args.mean, 0),
                      .rstd = DataFrom<float>(args.rstd, 0)};
    raw.aligned = AlignedRows<kPack<T>>(n, raw.x, raw.residual, raw.sum,
                                        raw.gamma, raw.beta, raw.y);
    Launch(CudaOf(device), NormKernel<T, true>,
           NormShape<T>(args.x.rows(), n, 1), raw);
  });
}

void LayerNormBackwardInput(Device& device,
                            const LayerNormBackwardInputArgs& args) {
  const int64_t n = args.dy.columns();
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    RawNormBackward<T> raw = {
        .n = n,
        .starts = DenseRows(n),
        .dy = args.dy.data<T>(),
        .s = args.s.data<T>(),
        .gamma = args.gamma.data<T>(),
        .mean = args.mean.data<float>(),
        .rstd = args.rstd.data<float>(),
        .residual_gradient = DataFrom<T>(args.residual_gradient, 0),
        .dx = args.dx.data<T>()};
    raw.aligned = AlignedRows<kPack<T>>(n, raw.dy, raw.s, raw.gamma,
                                        raw.residual_gradient, raw.dx);
    Launch(CudaOf(device), NormBackwardKernel<T, true>,
           NormShape<T>(args.dy.rows(), n, 2), raw);
  });
}

void LayerNormBackwardWeight(Device& device,
                             const LayerNormBackwardWeightArgs& args) {
  const int64_t n = args.dy.columns();
  const Tensor& wanted = args.dgamma.defined() ? args.dgamma : args.dbeta;
  WithTypes(args.dy, wanted, [&]<typename T, typename G>() {
    LayerNormWeightTerm<T> term = {.dy = args.dy.data<T>(),
                                   .s = args.s.data<T>(),
                                   .mean = args.mean.data<float>(),
                                   .rstd = args.rstd.data<float>(),
                                   .n = n};
    term.aligned = AlignedRows<kPack<T>>(n, term.dy, term.s);
    SumColumns<kPack<T>, 2, G>(
        CudaOf(device), args.dy.rows(), n, term,
        {DataFrom<G>(args.dgamma, 0), DataFrom<G>(args.dbeta, 0)});
  });
}

}  // namespace troupe::cuda
