#include "ops/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// The loss of one row; overwrites it with the gradient if asked.
template <typename T>
double Row(const CpuDevice& cpu, const CrossEntropyArgs& args, T* logits,
           int32_t target) {
  const int64_t n = args.logits.columns();
  if (target == -1) {
    if (args.gradient) cpu.loops<T>().fill(logits, n, 0.0f);
    return 0;
  }
  CHECK(target >= 0 && target < n) << "target " << target << " of " << n;
  const float at_target = FromElement(logits[target]);
  float largest;
  double sum;
  cpu.loops<T>().softmax_sum(logits, n, &largest, &sum);
  if (args.gradient) {
    const float scale = static_cast<float>(args.gradient_scale / sum);
    cpu.loops<T>().exp_scaled(logits, n, largest, scale);
    // Once more in f32, so that the difference is rounded once.
    float probability = at_target;
    cpu.loops<float>().exp_scaled(&probability, 1, largest, scale);
    logits[target] = ToElement<T>(probability - args.gradient_scale);
  }
  return std::log(sum) + (double{largest} - at_target);
}

}  // namespace

void CrossEntropy(Device& device, const CrossEntropyArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t rows = args.logits.rows();
  const int64_t stride = args.logits.RowStride();
  const int32_t* targets = args.targets.data<int32_t>();
  float* losses = DataFrom<float>(args.losses, 0);
  ScratchPool::Block scratch = cpu.scratch().Take(rows * sizeof(double));
  double* row_losses = scratch.as<double>();
  WithActivationType(args.logits.dtype(), [&]<typename T>() {
    T* logits = args.logits.data<T>();
    cpu.ForRows(rows, args.logits.columns(), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const double loss = Row(cpu, args, logits + row * stride, targets[row]);
        row_losses[row] = loss;
        if (losses != nullptr) losses[row] = static_cast<float>(loss);
      }
    });
  });
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) sum += row_losses[row];
  *args.loss_sum.data<double>() += sum;
  if (args.count.defined()) {
    *args.count.data<double>() +=
        static_cast<double>(rows - std::count(targets, targets + rows, -1));
  }
}

}  // namespace troupe::cpu
