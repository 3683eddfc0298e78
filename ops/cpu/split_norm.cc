#include "ops/split_norm.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

void RowSums(Device& device, const RowSumsArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.x.columns();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    cpu.ForRows(args.x.rows(), n, [&](int64_t begin, int64_t end) {
      cpu.loops<T>().row_sums(
          {.rows = end - begin,
           .n = n,
           .x = DataFrom<T>(args.x, begin * n),
           .row_sums = DataFrom<double>(args.row_sums, 2 * begin)});
    });
  });
}

void RowSumsBackward(Device& device, const RowSumsBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.x.columns();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    cpu.ForRows(args.x.rows(), n, [&](int64_t begin, int64_t end) {
      cpu.loops<T>().row_sums_backward(
          {.rows = end - begin,
           .n = n,
           .x = DataFrom<T>(args.x, begin * n),
           .row_sums_gradient =
               DataFrom<double>(args.row_sums_gradient, 2 * begin),
           .residual_gradient = DataFrom<T>(args.residual_gradient, begin * n),
           .dx = DataFrom<T>(args.dx, begin * n)});
    });
  });
}

void SplitNorm(Device& device, const SplitNormArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.x.columns();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    cpu.ForRows(args.x.rows(), n, [&](int64_t begin, int64_t end) {
      cpu.loops<T>().split_norm(
          {.rows = end - begin,
           .n = n,
           .columns = args.columns,
           .x = DataFrom<T>(args.x, begin * n),
           .row_sums = DataFrom<double>(args.row_sums, 2 * begin),
           .gamma = args.gamma.data<T>(),
           .beta = DataFrom<T>(args.beta, 0),
           .centred = args.centred,
           .epsilon = args.epsilon,
           .y = DataFrom<T>(args.y, begin * n),
           .mean = DataFrom<float>(args.mean, begin),
           .rstd = DataFrom<float>(args.rstd, begin)});
    });
  });
}

void SplitNormBackwardInput(Device& device,
                            const SplitNormBackwardInputArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.dy.columns();
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    cpu.ForRows(args.dy.rows(), n, [&](int64_t begin, int64_t end) {
      cpu.loops<T>().split_norm_backward_input(
          {.rows = end - begin,
           .n = n,
           .columns = args.columns,
           .dy = DataFrom<T>(args.dy, begin * n),
           .x = DataFrom<T>(args.x, begin * n),
           .gamma = args.gamma.data<T>(),
           .mean = DataFrom<float>(args.mean, begin),
           .rstd = DataFrom<float>(args.rstd, begin),
           .residual_gradient = DataFrom<T>(args.residual_gradient, begin * n),
           .dx = DataFrom<T>(args.dx, begin * n),
           .row_sums_gradient =
               DataFrom<double>(args.row_sums_gradient, 2 * begin)});
    });
  });
}

}  // namespace troupe::cpu
