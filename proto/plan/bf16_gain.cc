#include "proto/plan/bf16_gain.h"

#include <cmath>
#include <map>
#include <tuple>

#include "absl/strings/str_format.h"

namespace troupe {
namespace {

// Of what has the same key, f32's rate and bf16's.
struct Pair {
  double f32 = 0;
  double bf16 = 0;
};

template <typename Key>
class Gains {
 public:
  void Add(const Key& key, ElementType dtype, double rate) {
    if (dtype == F32) pairs_[key].f32 = rate;
    if (dtype == BF16) pairs_[key].bf16 = rate;
  }

  double Mean() const {
    double sum = 0;
    int count = 0;
    for (const auto& [key, pair] : pairs_) {
      if (!(pair.f32 > 0) || !(pair.bf16 > 0)) continue;
      sum += std::log(pair.bf16 / pair.f32);
      ++count;
    }
    return count == 0 ? 1 : std::exp(sum / count);
  }

 private:
  std::map<Key, Pair> pairs_;
};

}  // namespace

Bf16Gain Bf16GainOf(const Calibration& calibration) {
  Gains<std::tuple<int, int64_t, int64_t, int64_t>> products;
  for (const MatmulRate& rate : calibration.matmul()) {
    products.Add({rate.form(), rate.m(), rate.n(), rate.k()}, rate.dtype(),
                 rate.flops_per_second());
  }
  Gains<std::tuple<int64_t, int64_t, bool>> attention;
  for (const AttentionRate& rate : calibration.attention()) {
    attention.Add({rate.length(), rate.head_dim(), false}, rate.dtype(),
                  rate.forward_flops_per_second());
    attention.Add({rate.length(), rate.head_dim(), true}, rate.dtype(),
                  rate.backward_flops_per_second());
  }
  return {.products = products.Mean(), .attention = attention.Mean()};
}

std::string Bf16LossText(const Bf16Gain& gain) {
  if (gain.products >= 1) return "";
  return absl::StrFormat(
      "products in bf16 at %.2f of f32's rate, attention at %.2f",
      gain.products, gain.attention);
}

}  // namespace troupe
