#include "scheduler/simulate/rates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

namespace troupe {
namespace {

void FillIn(double fallback, double measured, void (Calibration::*set)(double),
            Calibration& calibration) {
  if (!(measured > 0)) (calibration.*set)(fallback);
}

// A worker that measured nothing in bf16 converts to f32, more or less.
void CompleteBf16(Calibration& calibration) {
  const auto products = calibration.matmul();
  const bool measured =
      std::any_of(products.begin(), products.end(),
                  [](const MatmulRate& rate) { return rate.dtype() == BF16; });
  for (const MatmulRate& rate : products) {
    if (!measured) (*calibration.add_matmul() = rate).set_dtype(BF16);
  }
  FillIn(calibration.attention_flops_per_second(),
         calibration.attention_bf16_flops_per_second(),
         &Calibration::set_attention_bf16_flops_per_second, calibration);
  FillIn(calibration.attention_backward_flops_per_second(),
         calibration.attention_backward_bf16_flops_per_second(),
         &Calibration::set_attention_backward_bf16_flops_per_second,
         calibration);
  FillIn(calibration.elementwise_ops_per_second(),
         calibration.elementwise_bf16_ops_per_second(),
         &Calibration::set_elementwise_bf16_ops_per_second, calibration);
}

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
  calibration.set_attention_flops_per_second(10e9);
  calibration.set_attention_backward_flops_per_second(8e9);
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
  if (full.threads() < 1) full.set_threads(1);
  FillIn(fallback.attention_flops_per_second(),
         full.attention_flops_per_second(),
         &Calibration::set_attention_flops_per_second, full);
  FillIn(fallback.attention_backward_flops_per_second(),
         full.attention_backward_flops_per_second(),
         &Calibration::set_attention_backward_flops_per_second, full);
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
  CompleteBf16(full);
  return full;
}

double MatmulFlopsPerSecond(const Calibration& calibration, ElementType dtype,
                            const MatmulSize& size) {
  std::map<double, double> rates;  // by the logarithm of the product's flops
  for (const MatmulRate& rate : calibration.matmul()) {
    if (rate.dtype() != dtype || !(rate.flops_per_second() > 0)) continue;
    double& best = rates[std::log(MatmulFlops({rate.m(), rate.n(), rate.k()}))];
    best = std::max(best, rate.flops_per_second());
  }
  if (rates.empty()) {
    return DefaultCalibration().matmul(0).flops_per_second();
  }
  const double at = std::log(MatmulFlops(size));
  const auto above = rates.lower_bound(at);
  if (above == rates.end()) return rates.rbegin()->second;
  if (above == rates.begin()) return above->second;
  const auto below = std::prev(above);
  const double part = (at - below->first) / (above->first - below->first);
  return below->second + part * (above->second - below->second);
}

double MatmulFlops(const MatmulSize& size) {
  return 2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) *
         static_cast<double>(size.k);
}

double AllReduceSeconds(const LinkRate& link, const AllReduceSize& size) {
  if (size.ranks <= 1) return 0;
  const double steps = 2.0 * (size.ranks - 1);
  return steps * link.latency_us() * 1e-6 +
         static_cast<double>(AllReduceBytesSent(size)) /
             link.bytes_per_second();
}

int64_t AllReduceBytesSent(const AllReduceSize& size) {
  return 2 * (size.ranks - 1) * size.bytes / size.ranks;
}

}  // namespace troupe
