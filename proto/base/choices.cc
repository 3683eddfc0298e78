#include "proto/base/choices.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace troupe {
namespace {

constexpr size_t kDivisorsShown = 7;

}  // namespace

std::string OrList(const std::vector<std::string>& words) {
  if (words.size() <= 1) return absl::StrJoin(words, "");
  return absl::StrCat(absl::StrJoin(words.begin(), words.end() - 1, ", "),
                      " or ", words.back());
}

std::string DivisorsText(int64_t n, int64_t wanted) {
  std::vector<int64_t> divisors;
  for (int64_t i = 1; i * i <= n; ++i) {
    if (n % i != 0) continue;
    divisors.push_back(i);
    if (i != n / i) divisors.push_back(n / i);
  }
  std::sort(divisors.begin(), divisors.end(), [&](int64_t a, int64_t b) {
    const int64_t far_a = std::abs(a - wanted), far_b = std::abs(b - wanted);
    return far_a != far_b ? far_a < far_b : a < b;
  });
  if (divisors.size() > kDivisorsShown) divisors.resize(kDivisorsShown);
  std::sort(divisors.begin(), divisors.end());
  std::vector<std::string> words;
  for (const int64_t divisor : divisors) words.push_back(absl::StrCat(divisor));
  return OrList(words);
}

}  // namespace troupe
