// Sums of gradients of parameters over the rows of a call. They are taken in
// f32 and added to what is there: by the loops themselves where gradients are
// f32; where they are of the parameters' type, in a scratch of f32 first, so
// that each element is rounded once a call.
#ifndef TROUPE_OPS_CPU_GRADIENT_SUM_H_
#define TROUPE_OPS_CPU_GRADIENT_SUM_H_

#include <algorithm>

#include "absl/types/optional.h"
#include "ops/cpu/cpu_device.h"

namespace troupe::cpu {

// Elements [begin, begin + count) of a dense gradient; of none, where nobody
// wants it: then the sums are lost.
class GradientSum {
 public:
  GradientSum(CpuDevice& cpu, const Tensor& gradient, int64_t begin,
              int64_t count)
      : cpu_(cpu), gradient_(gradient), begin_(begin), count_(count) {
    if (gradient.defined() && gradient.dtype() == DType::kF32) {
      sums_ = gradient.data<float>() + begin;
      return;
    }
    scratch_.emplace(cpu.scratch().Take(count * sizeof(float)));
    sums_ = scratch_->as<float>();
    std::fill_n(sums_, count, 0.0f);
  }
  GradientSum(const GradientSum&) = delete;

  // What the loops add to.
  float* data() const { return sums_; }

  // Call once, when all is summed.
  void Add() const {
    if (!gradient_.defined() || gradient_.dtype() == DType::kF32) return;
    WithActivationType(gradient_.dtype(), [&]<typename T>() {
      cpu_.loops<T>().add_f32(sums_, gradient_.data<T>() + begin_, count_,
                              1.0f);
    });
  }

 private:
  CpuDevice& cpu_;
  const Tensor& gradient_;
  const int64_t begin_, count_;
  absl::optional<ScratchPool::Block> scratch_;
  float* sums_ = nullptr;
};

}  // namespace troupe::cpu

#endif  // TROUPE_OPS_CPU_GRADIENT_SUM_H_
