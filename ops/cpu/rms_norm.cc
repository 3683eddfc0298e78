#include "ops/rms_norm.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

void RmsNorm(Device& device, const RmsNormArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.x.columns();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    cpu.ForRows(args.x.rows(), n, [&](int64_t begin, int64_t end) {
      cpu.loops<T>().rms_norm(
          {.rows = end - begin,
           .n = n,
           .x = DataFrom<T>(args.x, begin * n),
           .residual = DataFrom<T>(args.residual, begin * n),
           .sum = DataFrom<T>(args.sum, begin * n),
           .dropout = ToRaw(args.dropout.probability, args.dropout.stream,
                            args.dropout.first_element + begin * n),
           .gamma = args.gamma.data<T>(),
           .epsilon = args.epsilon,
           .y = DataFrom<T>(args.y, begin * n),
           .rstd = DataFrom<float>(args.rstd, begin)});
    });
  });
}

void RmsNormBackwardInput(Device& device,
                          const RmsNormBackwardInputArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.dy.columns();
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    cpu.ForRows(args.dy.rows(), n, [&](int64_t begin, int64_t end) {
      cpu.loops<T>().rms_norm_backward_input(
          {.rows = end - begin,
           .n = n,
           .stride = n,
           .dy = DataFrom<T>(args.dy, begin * n),
           .s = DataFrom<T>(args.s, begin * n),
           .gamma = args.gamma.data<T>(),
           .rstd = DataFrom<float>(args.rstd, begin),
           .residual_gradient = DataFrom<T>(args.residual_gradient, begin * n),
           .dx = DataFrom<T>(args.dx, begin * n)});
    });
  });
}

void RmsNormBackwardWeight(Device& device,
                           const RmsNormBackwardWeightArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t rows = args.dy.rows();
  const int64_t n = args.dy.columns();
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    cpu.ForColumns(rows, n, [&](int64_t begin, int64_t end) {
      cpu.loops<T>().rms_norm_backward_weight(
          {.rows = rows,
           .n = end - begin,
           .stride = n,
           .dy = DataFrom<T>(args.dy, begin),
           .s = DataFrom<T>(args.s, begin),
           .rstd = args.rstd.data<float>(),
           .dgamma = DataFrom<float>(args.dgamma, begin)});
    });
  });
}

}  // namespace troupe::cpu
