#include "ops/layer_norm.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/gradient_sum.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

void LayerNorm(Device& device, const LayerNormArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.x.columns();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    cpu.ForRows(args.x.rows(), n, [&](int64_t begin, int64_t end) {
      cpu.loops<T>().layer_norm(
          {.rows = end - begin,
           .n = n,
           .x = DataFrom<T>(args.x, begin * n),
           .residual = DataFrom<T>(args.residual, begin * n),
           .sum = DataFrom<T>(args.sum, begin * n),
           .dropout = ToRaw(args.dropout.probability, args.dropout.stream,
                            args.dropout.first_element + begin * n),
           .gamma = args.gamma.data<T>(),
           .beta = args.beta.data<T>(),
           .epsilon = args.epsilon,
           .y = DataFrom<T>(args.y, begin * n),
           .mean = DataFrom<float>(args.mean, begin),
           .rstd = DataFrom<float>(args.rstd, begin)});
    });
  });
}

void LayerNormBackwardInput(Device& device,
                            const LayerNormBackwardInputArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.dy.columns();
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    cpu.ForRows(args.dy.rows(), n, [&](int64_t begin, int64_t end) {
      cpu.loops<T>().layer_norm_backward_input(
          {.rows = end - begin,
           .n = n,
           .stride = n,
           .dy = DataFrom<T>(args.dy, begin * n),
           .s = DataFrom<T>(args.s, begin * n),
           .gamma = args.gamma.data<T>(),
           .mean = DataFrom<float>(args.mean, begin),
           .rstd = DataFrom<float>(args.rstd, begin),
           .residual_gradient = DataFrom<T>(args.residual_gradient, begin * n),
           .dx = DataFrom<T>(args.dx, begin * n)});
    });
  });
}

void LayerNormBackwardWeight(Device& device,
                             const LayerNormBackwardWeightArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t rows = args.dy.rows();
  const int64_t n = args.dy.columns();
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    cpu.ForColumns(rows, n, [&](int64_t begin, int64_t end) {
      const GradientSum dgamma(cpu, args.dgamma, begin, end - begin);
      const GradientSum dbeta(cpu, args.dbeta, begin, end - begin);
      cpu.loops<T>().layer_norm_backward_weight(
          {.rows = rows,
           .n = end - begin,
           .stride = n,
           .dy = DataFrom<T>(args.dy, begin),
           .s = DataFrom<T>(args.s, begin),
           .mean = args.mean.data<float>(),
           .rstd = args.rstd.data<float>(),
           .dgamma = dgamma.data(),
           .dbeta = dbeta.data()});
      dgamma.Add();
      dbeta.Add();
    });
  });
}

}  // namespace troupe::cpu
