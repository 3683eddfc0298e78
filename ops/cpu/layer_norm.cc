#include "ops/layer_norm.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

float* RowsFrom(const Tensor& t, int64_t row, int64_t n) {
  return t.defined() ? t.data<float>() + row * n : nullptr;
}

}  // namespace

void LayerNorm(Device& device, const LayerNormArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.x.columns();
  cpu.ForRows(args.x.rows(), n, [&](int64_t begin, int64_t end) {
    cpu.simd().layer_norm(
        {.rows = end - begin,
         .n = n,
         .x = RowsFrom(args.x, begin, n),
         .residual = RowsFrom(args.residual, begin, n),
         .sum = RowsFrom(args.sum, begin, n),
         .dropout = ToRaw(args.dropout.probability, args.dropout.stream,
                          args.dropout.first_element + begin * n),
         .gamma = args.gamma.data<float>(),
         .beta = args.beta.data<float>(),
         .epsilon = args.epsilon,
         .y = RowsFrom(args.y, begin, n),
         .mean = RowsFrom(args.mean, begin, 1),
         .rstd = RowsFrom(args.rstd, begin, 1)});
  });
}

void LayerNormBackwardInput(Device& device,
                            const LayerNormBackwardInputArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.dy.columns();
  cpu.ForRows(args.dy.rows(), n, [&](int64_t begin, int64_t end) {
    cpu.simd().layer_norm_backward_input(
        {.rows = end - begin,
         .n = n,
         .stride = n,
         .dy = RowsFrom(args.dy, begin, n),
         .s = RowsFrom(args.s, begin, n),
         .gamma = args.gamma.data<float>(),
         .mean = RowsFrom(args.mean, begin, 1),
         .rstd = RowsFrom(args.rstd, begin, 1),
         .residual_gradient = RowsFrom(args.residual_gradient, begin, n),
         .dx = RowsFrom(args.dx, begin, n)});
  });
}

void LayerNormBackwardWeight(Device& device,
                             const LayerNormBackwardWeightArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t rows = args.dy.rows();
  const int64_t n = args.dy.columns();
  cpu.ForColumns(rows, n, [&](int64_t begin, int64_t end) {
    cpu.simd().layer_norm_backward_weight(
        {.rows = rows,
         .n = end - begin,
         .stride = n,
         .dy = args.dy.data<float>() + begin,
         .s = args.s.data<float>() + begin,
         .mean = args.mean.data<float>(),
         .rstd = args.rstd.data<float>(),
         .dgamma = args.dgamma.data<float>() + begin,
         .dbeta = args.dbeta.data<float>() + begin});
  });
}

}  // namespace troupe::cpu
