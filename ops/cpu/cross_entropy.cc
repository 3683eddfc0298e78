#include "ops/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// The loss of one row; overwrites it with the gradient if asked.
double Row(const CpuDevice& cpu, const CrossEntropyArgs& args, float* logits,
           int32_t target) {
  const int64_t n = args.logits.columns();
  if (target == -1) {
    if (args.gradient) std::fill(logits, logits + n, 0.0f);
    return 0;
  }
  CHECK(target >= 0 && target < n) << "target " << target << " of " << n;
  float largest;
  double sum;
  cpu.simd().softmax_sum(logits, n, &largest, &sum);
  const double loss = std::log(sum) + (double{largest} - logits[target]);
  if (args.gradient) {
    cpu.simd().exp_scaled(logits, n, largest,
                          static_cast<float>(args.gradient_scale / sum));
    logits[target] -= args.gradient_scale;
  }
  return loss;
}

}  // namespace

void CrossEntropy(Device& device, const CrossEntropyArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t rows = args.logits.rows();
  const int64_t stride = args.logits.RowStride();
  float* logits = args.logits.data<float>();
  const int32_t* targets = args.targets.data<int32_t>();
  float* losses = args.losses.defined() ? args.losses.data<float>() : nullptr;
  ScratchPool::Block scratch = cpu.scratch().Take(rows * sizeof(double));
  double* row_losses = scratch.as<double>();
  cpu.ForRows(rows, args.logits.columns(), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      row_losses[row] = Row(cpu, args, logits + row * stride, targets[row]);
      if (losses != nullptr) losses[row] = static_cast<float>(row_losses[row]);
    }
  });
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) sum += row_losses[row];
  *args.loss_sum.data<double>() += sum;
}

}  // namespace troupe::cpu
