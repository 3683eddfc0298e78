#include "ops/rms_norm.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/gradient_sum.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// run(first, rows, at): rows that lie without gaps, from the first'th on, of
// groups [begin, end); `at` is where they lie in elements.
template <typename Run>
void ForRuns(const RowGroups& groups, int64_t begin, int64_t end,
             const Run& run) {
  const int64_t at_once = groups.dense ? end - begin : 1;
  for (int64_t group = begin; group < end; group += at_once) {
    run(group * groups.rows, at_once * groups.rows, group * groups.stride);
  }
}

}  // namespace

void RmsNorm(Device& device, const RmsNormArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.x.columns();
  const RowGroups groups = RowGroupsOf(args.x);
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    const auto run = [&](int64_t first, int64_t rows, int64_t at) {
      cpu.loops<T>().rms_norm(
          {.rows = rows,
           .n = n,
           .x = DataFrom<T>(args.x, at),
           .residual = DataFrom<T>(args.residual, at),
           .sum = DataFrom<T>(args.sum, at),
           .dropout = ToRaw(args.dropout.probability, args.dropout.stream,
                            args.dropout.first_element + at),
           .gamma = args.gamma.data<T>(),
           .epsilon = args.epsilon,
           .y = DataFrom<T>(args.y, at),
           .rstd = DataFrom<float>(args.rstd, first)});
    };
    cpu.ForRows(groups.count, groups.rows * n, [&](int64_t begin, int64_t end) {
      ForRuns(groups, begin, end, run);
    });
  });
}

void RmsNormBackwardInput(Device& device,
                          const RmsNormBackwardInputArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.dy.columns();
  const RowGroups groups = RowGroupsOf(args.dy);
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    const auto run = [&](int64_t first, int64_t rows, int64_t at) {
      cpu.loops<T>().rms_norm_backward_input(
          {.rows = rows,
           .n = n,
           .stride = n,
           .dy = DataFrom<T>(args.dy, at),
           .s = DataFrom<T>(args.s, at),
           .gamma = args.gamma.data<T>(),
           .rstd = DataFrom<float>(args.rstd, first),
           .residual_gradient = DataFrom<T>(args.residual_gradient, at),
           .dx = DataFrom<T>(args.dx, at)});
    };
    cpu.ForRows(groups.count, groups.rows * n, [&](int64_t begin, int64_t end) {
      ForRuns(groups, begin, end, run);
    });
  });
}

void RmsNormBackwardWeight(Device& device,
                           const RmsNormBackwardWeightArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.dy.columns();
  const RowGroups groups = RowGroupsOf(args.dy);
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    cpu.ForColumns(args.dy.rows(), n, [&](int64_t begin, int64_t end) {
      const GradientSum dgamma(cpu, args.dgamma, begin, end - begin);
      ForRuns(groups, 0, groups.count,
              [&](int64_t first, int64_t rows, int64_t at) {
                cpu.loops<T>().rms_norm_backward_weight(
                    {.rows = rows,
                     .n = end - begin,
                     .stride = n,
                     .dy = DataFrom<T>(args.dy, at + begin),
                     .s = DataFrom<T>(args.s, at + begin),
                     .rstd = DataFrom<float>(args.rstd, first),
                     .dgamma = dgamma.data()});
              });
      dgamma.Add();
    });
  });
}

}  // namespace troupe::cpu
