#include "ops/router_loss.h"

#include <cmath>
#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/floats_of.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

double SumOf(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

double EntropyOf(const float* s, int64_t e, double sum) {
  double entropy = 0;
  for (int64_t i = 0; i < e; ++i) {
    if (s[i] <= 0) continue;
    const double p = s[i] / sum;
    entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace

// On one thread, in the order of rows: equal inputs give equal bits.
void RouterLoss(Device&, const RouterLossArgs& args) {
  const int64_t n = args.scores.rows(), e = args.scores.columns();
  const int64_t k = args.choices.columns();
  const std::vector<float> loads = FloatsOf(args.load);
  double* const tokens = args.tokens.data<double>();
  double balance = 0, z = 0, entropy = 0;
  for (int64_t row = 0; row < n; ++row) {
    const float* const s = args.scores.data<float>() + row * e;
    const int32_t* const choices = args.choices.data<int32_t>() + row * k;
    const double sum = SumOf(s, e);
    entropy += EntropyOf(s, e, sum);
    for (int64_t j = 0; j < k; ++j) {
      CHECK(choices[j] >= 0 && choices[j] < e)
          << "choice " << choices[j] << " of row " << row << ", of " << e
          << " experts";
      tokens[choices[j]] += 1;
    }
    if (!loads.empty()) {
      const float* const load = loads.data() + args.rows.Of(row) * e;
      double product = 0;
      for (int64_t i = 0; i < e; ++i) product += double{load[i]} * s[i];
      balance += args.load_scale * product / sum;
    }
    if (args.logsumexp.defined()) {
      const double logsumexp = args.logsumexp.data<float>()[row];
      z += logsumexp * logsumexp;
    }
  }
  *args.entropy.data<double>() += entropy;
  *args.rows_counted.data<double>() += static_cast<double>(n);
  if (!loads.empty()) *args.balance.data<double>() += balance;
  if (args.logsumexp.defined()) *args.z.data<double>() += z;
}

void RouterLossBackward(Device& device, const RouterLossBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.scores.rows(), e = args.scores.columns();
  if (args.d_scores.defined()) {
    const std::vector<float> loads = FloatsOf(args.load);
    const double scale = args.balance_scale * args.load_scale;
    cpu.ForRows(n, e, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float* const s = args.scores.data<float>() + row * e;
        float* const ds = args.d_scores.data<float>() + row * e;
        const float* const load = loads.data() + args.rows.Of(row) * e;
        const double sum = SumOf(s, e);
        double mean = 0;
        for (int64_t i = 0; i < e; ++i) mean += double{load[i]} * s[i];
        mean /= sum;
        for (int64_t i = 0; i < e; ++i) {
          ds[i] = static_cast<float>(scale * (load[i] - mean) / sum);
        }
      }
    });
  }
  if (args.d_logsumexp.defined()) {
    const float* const logsumexp = args.logsumexp.data<float>();
    float* const gradient = args.d_logsumexp.data<float>();
    for (int64_t row = 0; row < n; ++row) {
      gradient[row] = static_cast<float>(2 * args.z_scale * logsumexp[row]);
    }
  }
}

}  // namespace troupe::cpu
