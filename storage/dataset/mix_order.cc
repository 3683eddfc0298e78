#include "storage/dataset/mix_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

constexpr uint64_t kPeriodMax = 1'000'000;
constexpr size_t kSourcesMax = 1 << 16;
// How far from a whole number a multiple of a weight may be, over the period:
// what doubles lose.
constexpr double kWhole = 1e-9;

// The least period of which all shares are whole; kPeriodMax where none is.
uint64_t PeriodOf(absl::Span<const double> shares) {
  // A common multiple of the sources' own, each the least that fits.
  uint64_t period = 1;
  for (const double share : shares) {
    uint64_t own = 0;
    for (uint64_t p = 1; p <= kPeriodMax && own == 0; ++p) {
      const double multiple = share * static_cast<double>(p);
      if (std::abs(multiple - std::round(multiple)) <
          kWhole * static_cast<double>(p) / kPeriodMax + 1e-12 * multiple) {
        own = p;
      }
    }
    if (own == 0) return kPeriodMax;
    period = std::lcm(period, own);
    if (period > kPeriodMax) return kPeriodMax;
  }
  return period;
}

// Whole shares that add up to the period: the largest remainders are rounded
// up, the first source's of equal ones.
std::vector<uint64_t> WholeShares(absl::Span<const double> shares,
                                  uint64_t period) {
  std::vector<uint64_t> whole;
  std::vector<double> rests;
  uint64_t sum = 0;
  for (const double share : shares) {
    const double exact = share * static_cast<double>(period);
    const double floor = std::floor(exact + 1e-6);
    whole.push_back(static_cast<uint64_t>(floor));
    rests.push_back(exact - floor);
    sum += whole.back();
  }
  std::vector<size_t> by_rest(shares.size());
  std::iota(by_rest.begin(), by_rest.end(), size_t{0});
  std::stable_sort(by_rest.begin(), by_rest.end(),
                   [&](size_t a, size_t b) { return rests[a] > rests[b]; });
  for (size_t i = 0; sum < period; ++i, ++sum) {
    ++whole[by_rest[i % by_rest.size()]];
  }
  return whole;
}

}  // namespace

absl::StatusOr<MixOrder> MixOrder::Create(absl::Span<const double> weights) {
  if (weights.empty() || weights.size() > kSourcesMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a mix of ", weights.size(), " sources; use 1 to ", kSourcesMax));
  }
  double sum = 0;
  for (const double weight : weights) {
    if (!(weight > 0) || !std::isfinite(weight)) {
      return absl::InvalidArgumentError(
          absl::StrCat("weight ", weight, "; use a number above 0"));
    }
    sum += weight;
  }
  std::vector<double> shares;
  for (const double weight : weights) shares.push_back(weight / sum);
  MixOrder order;
  const uint64_t period = PeriodOf(shares);
  order.shares_ = WholeShares(shares, period);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (order.shares_[i] > 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "weight ", weights[i], " is less than a millionth of the sum ", sum,
        "; use a larger one, or leave the source out"));
  }
  order.table_.resize(period);
  order.FillTable();
  return order;
}

// All in whole numbers: with D = 2 K - 2, source s may get sample n (from 1)
// where D (n a_s - P x_s) >= P, x_s being how many it has; its deadline is the
// least n' with D (n' a_s - P x_s) >= P (D - 1), past which it would be late.
void MixOrder::FillTable() {
  const auto sources = static_cast<int64_t>(shares_.size());
  const auto period = static_cast<int64_t>(table_.size());
  const int64_t d = std::max<int64_t>(1, 2 * sources - 2);
  std::vector<int64_t> had(shares_.size(), 0);
  for (int64_t n = 1; n <= period; ++n) {
    int64_t best = -1;
    int64_t best_deadline = 0;
    for (int64_t s = 0; s < sources; ++s) {
      const auto share = static_cast<int64_t>(shares_[s]);
      const int64_t due = n * share - period * had[s];
      if (sources > 1 && d * due < period) continue;
      // ceil((P (d - 1) / d + P x) / a): compared as whole numbers.
      const int64_t need = period * (d - 1) + d * period * had[s];
      const int64_t deadline = (need + d * share - 1) / (d * share);
      if (best < 0 || deadline < best_deadline) {
        best = s;
        best_deadline = deadline;
      }
    }
    CHECK_GE(best, 0) << "no source is due at sample " << n;
    table_[n - 1] = {.source = static_cast<uint32_t>(best),
                     .index = static_cast<uint32_t>(had[best]++)};
  }
  for (int64_t s = 0; s < sources; ++s) {
    CHECK_EQ(static_cast<uint64_t>(had[s]), shares_[s]);
  }
}

MixOrder::Place MixOrder::PlaceOf(uint64_t number) const {
  const Entry& entry = table_[number % period()];
  return {.source = entry.source,
          .index = number / period() * shares_[entry.source] + entry.index};
}

uint64_t MixOrder::LongestWithin(absl::Span<const uint64_t> available) const {
  CHECK_EQ(available.size(), sources());
  uint64_t periods = UINT64_MAX;
  for (size_t s = 0; s < sources(); ++s) {
    periods = std::min(periods, available[s] / shares_[s]);
  }
  const uint64_t whole = periods * period();
  for (uint64_t i = 0; i < period(); ++i) {
    const Place place = PlaceOf(whole + i);
    if (place.index >= available[place.source]) return whole + i;
  }
  return whole + period();
}

}  // namespace troupe
