#include "scheduler/cluster/compare_scalars.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace troupe {
namespace {

constexpr std::array<const char*, 2> kNames = {"loss", "gradient norm"};
using Scalars = std::array<double, kNames.size()>;
using Bits = std::array<uint64_t, kNames.size()>;

Scalars HeldBy(const StepReport& report) {
  return {report.record().loss(), report.record().grad_norm()};
}

Bits BitsOf(const Scalars& scalars) {
  Bits bits;
  static_assert(sizeof(bits) == sizeof(scalars));
  std::memcpy(bits.data(), scalars.data(), sizeof(bits));
  return bits;
}

// What `of_other` holds, too, but not the same.
std::string DifferenceOf(const Scalars& one, const Scalars& other,
                         int of_other) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (BitsOf(one)[i] == BitsOf(other)[i]) continue;
    return absl::StrFormat("%s %.17g where rank %d has %.17g", kNames[i],
                           one[i], of_other, other[i]);
  }
  return "";
}

}  // namespace

std::optional<ScalarDifference> CompareScalars(
    const std::map<int, StepReport>& reports, int ranks) {
  std::map<Bits, std::vector<int>> alike;
  for (const auto& [rank, report] : reports) {
    alike[BitsOf(HeldBy(report))].push_back(rank);
  }
  if (alike.size() <= 1) return std::nullopt;
  const auto fewer = [](const auto& a, const auto& b) {
    // Of as many, those with the lowest rank.
    return std::make_pair(a.second.size(), -a.second[0]) <
           std::make_pair(b.second.size(), -b.second[0]);
  };
  const std::vector<int>& most =
      std::max_element(alike.begin(), alike.end(), fewer)->second;
  ScalarDifference difference = {.agreed = most[0]};
  std::vector<int> others;
  for (const auto& [held, by] : alike) {
    if (by[0] != most[0]) others.insert(others.end(), by.begin(), by.end());
  }
  std::sort(others.begin(), others.end());
  difference.others = others[0];
  difference.what =
      DifferenceOf(HeldBy(reports.at(others[0])),
                   HeldBy(reports.at(difference.agreed)), difference.agreed);
  if (2 * most.size() > static_cast<size_t>(ranks))
    difference.wrong = std::move(others);
  return difference;
}

}  // namespace troupe
