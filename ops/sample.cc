#include "ops/sample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "proto/base/bf16.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

// The indices of the k largest logits (lower index first among equals), in
// rising order.
std::vector<int> Candidates(absl::Span<const float> logits, int k) {
  std::vector<int> indices(logits.size());
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int>(i);
  if (k <= 0 || k >= static_cast<int>(indices.size())) return indices;
  std::nth_element(indices.begin(), indices.begin() + (k - 1), indices.end(),
                   [&](int a, int b) {
                     return logits[a] != logits[b] ? logits[a] > logits[b]
                                                   : a < b;
                   });
  indices.resize(k);
  std::sort(indices.begin(), indices.end());
  return indices;
}

}  // namespace

int SampleToken(absl::Span<const float> logits, const SampleOptions& options) {
  CHECK(!logits.empty());
  CHECK_GE(options.temperature, 0.0f);
  CHECK(options.uniform >= 0.0f && options.uniform < 1.0f) << options.uniform;
  const int best = static_cast<int>(
      std::max_element(logits.begin(), logits.end()) - logits.begin());
  if (options.temperature == 0.0f || options.top_k == 1) return best;
  const std::vector<int> candidates = Candidates(logits, options.top_k);
  const auto weight = [&](int i) {
    return std::exp((double{logits[i]} - logits[best]) / options.temperature);
  };
  double total = 0;
  for (int i : candidates) total += weight(i);
  double left = options.uniform * total;
  for (int i : candidates) {
    left -= weight(i);
    if (left < 0) return i;
  }
  return best;  // rounding ate the last candidate's share
}

int SampleToken(absl::Span<const uint16_t> logits,
                const SampleOptions& options) {
  std::vector<float> widened(logits.size());
  std::transform(logits.begin(), logits.end(), widened.begin(), FromBF16);
  return SampleToken(absl::MakeConstSpan(widened), options);
}

}  // namespace troupe
