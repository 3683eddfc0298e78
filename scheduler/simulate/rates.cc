#include "scheduler/simulate/rates.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "proto/plan/bf16_gain.h"

namespace troupe {
namespace {

void FillIn(double fallback, double measured, void (Calibration::*set)(double),
            Calibration& calibration) {
  if (!(measured > 0)) (calibration.*set)(fallback);
}

// What was not measured of a type is as it was measured of another.
template <typename Rates>
void Copy(ElementType from, ElementType to, Rates& rates) {
  for (const auto& rate : rates) {
    if (rate.dtype() == to) return;
  }
  const Rates measured = rates;
  for (const auto& rate : measured) {
    if (rate.dtype() == from) (*rates.Add() = rate).set_dtype(to);
  }
}

void CopyProducts(ElementType from, ElementType to, Calibration& calibration) {
  Copy(from, to, *calibration.mutable_matmul());
  Copy(from, to, *calibration.mutable_attention());
}

// A worker that measured nothing in bf16 converts to f32, more or less. fp16 is
// measured on GPUs; processors convert it to f32, as they do bf16 where they
// lack instructions for that.
void CompleteNarrow(Calibration& calibration) {
  CopyProducts(F32, BF16, calibration);
  const bool converts = !Bf16GainOf(calibration).has_instructions();
  CopyProducts(converts ? BF16 : F32, F16, calibration);
  FillIn(calibration.elementwise_ops_per_second(),
         calibration.elementwise_bf16_ops_per_second(),
         &Calibration::set_elementwise_bf16_ops_per_second, calibration);
  FillIn(calibration.memory_bytes_per_second(),
         calibration.memory_bf16_bytes_per_second(),
         &Calibration::set_memory_bf16_bytes_per_second, calibration);
}

// Shepard's mean of what is added, around the size `at`.
template <size_t dims>
class Nearby {
 public:
  using Size = std::array<int64_t, dims>;

  explicit Nearby(const Size& at) : at_(at) {}

  void Add(const Size& size, double value) {
    double squares = 0;
    for (size_t i = 0; i < dims; ++i) {
      const double distance =
          std::log(static_cast<double>(size[i]) / static_cast<double>(at_[i]));
      squares += distance * distance;
    }
    // So near is the same size, and takes all weight.
    const double weight = 1 / std::max(squares * squares, 1e-12);
    weights_ += weight;
    sum_ += weight * value;
  }

  bool empty() const { return weights_ == 0; }
  double value() const { return sum_ / weights_; }

 private:
  const Size at_;
  double weights_ = 0;
  double sum_ = 0;
};

}  // namespace

Calibration DefaultCalibration() {
  Calibration calibration;
  calibration.set_device("unmeasured");
  calibration.set_threads(1);
  MatmulRate& matmul = *calibration.add_matmul();
  matmul.set_dtype(F32);
  matmul.set_m(1024);
  matmul.set_n(1024);
  matmul.set_k(1024);
  matmul.set_flops_per_second(30e9);
  AttentionRate& attention = *calibration.add_attention();
  attention.set_dtype(F32);
  attention.set_length(512);
  attention.set_head_dim(64);
  attention.set_forward_flops_per_second(10e9);
  attention.set_backward_flops_per_second(8e9);
  calibration.set_memory_bytes_per_second(4e9);
  calibration.set_optimizer_bytes_per_second(4e9);
  calibration.set_elementwise_ops_per_second(2e8);
  calibration.set_instruction_overhead_us(10);
  calibration.mutable_loopback()->set_latency_us(50);
  calibration.mutable_loopback()->set_bytes_per_second(1e9);
  return calibration;
}

Calibration CompletedCalibration(const Calibration& measured) {
  const Calibration fallback = DefaultCalibration();
  Calibration full = measured;
  if (full.matmul().empty()) *full.mutable_matmul() = fallback.matmul();
  if (full.attention().empty()) {
    *full.mutable_attention() = fallback.attention();
  }
  if (full.threads() < 1) full.set_threads(1);
  FillIn(fallback.memory_bytes_per_second(), full.memory_bytes_per_second(),
         &Calibration::set_memory_bytes_per_second, full);
  FillIn(fallback.optimizer_bytes_per_second(),
         full.optimizer_bytes_per_second(),
         &Calibration::set_optimizer_bytes_per_second, full);
  FillIn(fallback.elementwise_ops_per_second(),
         full.elementwise_ops_per_second(),
         &Calibration::set_elementwise_ops_per_second, full);
  if (!(full.loopback().bytes_per_second() > 0)) {
    *full.mutable_loopback() = fallback.loopback();
  }
  if (!(full.shared_memory().bytes_per_second() > 0)) {
    *full.mutable_shared_memory() = full.loopback();
  }
  CompleteNarrow(full);
  return full;
}

double MatmulFlopsPerSecond(const Calibration& calibration, ElementType dtype,
                            const MatmulSize& size) {
  Nearby<3> of_form({size.m, size.n, size.k});
  Nearby<3> of_any({size.m, size.n, size.k});
  for (const MatmulRate& rate : calibration.matmul()) {
    if (rate.dtype() != dtype || !(rate.flops_per_second() > 0)) continue;
    Nearby<3>& mean = rate.form() == size.form ? of_form : of_any;
    mean.Add({rate.m(), rate.n(), rate.k()}, rate.flops_per_second());
  }
  if (!of_form.empty()) return of_form.value();
  if (!of_any.empty()) return of_any.value();
  return DefaultCalibration().matmul(0).flops_per_second();
}

AttentionFlopsPerSecond AttentionRateOf(const Calibration& calibration,
                                        ElementType dtype,
                                        const AttentionSize& size) {
  Nearby<2> forward({size.length, size.head_dim});
  Nearby<2> backward({size.length, size.head_dim});
  for (const AttentionRate& rate : calibration.attention()) {
    if (rate.dtype() != dtype) continue;
    const Nearby<2>::Size at = {rate.length(), rate.head_dim()};
    forward.Add(at, rate.forward_flops_per_second());
    backward.Add(at, rate.backward_flops_per_second());
  }
  const AttentionRate fallback = DefaultCalibration().attention(0);
  if (forward.empty()) {
    return {.forward = fallback.forward_flops_per_second(),
            .backward = fallback.backward_flops_per_second()};
  }
  return {.forward = forward.value(), .backward = backward.value()};
}

double MatmulFlops(const MatmulSize& size) {
  return 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) *
         static_cast<double>(size.k);
}

int64_t CollectiveBytesSent(const CollectiveSize& size) {
  if (size.collective == SLICE) return 0;
  if (size.collective == SHIFT) return size.bytes;
  // A sum that all have pieces of, and then the root: of N ranks (N - 1) / N
  // each, and that once more of all together.
  if (size.collective == REDUCE) {
    return (size.ranks - 1) * (size.ranks + 1) * size.bytes /
           (size.ranks * size.ranks);
  }
  const int passes = size.collective == ALL_REDUCE ? 2 : 1;
  return passes * (size.ranks - 1) * size.bytes / size.ranks;
}

double TransferSeconds(const LinkRate& link, int64_t bytes) {
  return link.latency_us() * 1e-6 +
         static_cast<double>(bytes) / link.bytes_per_second();
}

LinkRate Slower(const LinkRate& a, const LinkRate& b) {
  LinkRate slower;
  slower.set_latency_us(std::max(a.latency_us(), b.latency_us()));
  slower.set_bytes_per_second(
      std::min(a.bytes_per_second(), b.bytes_per_second()));
  return slower;
}

}  // namespace troupe
