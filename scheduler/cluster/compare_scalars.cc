#include "scheduler/cluster/compare_scalars.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace troupe {
namespace {

constexpr std::array<const char*, 2> kNames = {"loss", "gradient norm"};
using Scalars = std::vector<double>;
using Bits = std::vector<uint64_t>;

Scalars HeldBy(const StepReport& report) {
  Scalars held = {report.record().loss(), report.record().grad_norm()};
  held.insert(held.end(), report.sums().begin(), report.sums().end());
  return held;
}

Bits BitsOf(const Scalars& scalars) {
  Bits bits(scalars.size());
  static_assert(sizeof(Bits::value_type) == sizeof(Scalars::value_type));
  std::memcpy(bits.data(), scalars.data(), bits.size() * sizeof(bits[0]));
  return bits;
}

// What is compared.
Bits BitsOf(const StepReport& report) {
  Bits bits = BitsOf(HeldBy(report));
  if (report.has_sequences_crc32c()) bits.push_back(report.sequences_crc32c());
  return bits;
}

// "sum expert_tokens of unit 3, element 2".
std::string NameOf(size_t index, const Sums& sums) {
  if (index < kNames.size()) return kNames[index];
  int64_t element = static_cast<int64_t>(index - kNames.size());
  for (const Sum& sum : sums) {
    if (element >= sum.elements()) {
      element -= sum.elements();
      continue;
    }
    return absl::StrCat(
        "sum ", sum.name(),
        sum.has_unit() ? absl::StrCat(" of unit ", sum.unit()) : "",
        sum.elements() > 1 ? absl::StrCat(", element ", element, ",") : "");
  }
  return absl::StrCat("sum number ", element);
}

// What `of_other` holds, too, but not the same.
std::string DifferenceOf(const StepReport& report, const StepReport& of_most,
                         int of_other, const Sums& sums) {
  const Scalars one = HeldBy(report);
  const Scalars other = HeldBy(of_most);
  if (one.size() != other.size()) {
    return absl::StrFormat("%d sums where rank %d has %d",
                           one.size() - kNames.size(), of_other,
                           other.size() - kNames.size());
  }
  const Bits bits = BitsOf(one);
  const Bits other_bits = BitsOf(other);
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] == other_bits[i]) continue;
    return absl::StrFormat("%s %.17g where rank %d has %.17g", NameOf(i, sums),
                           one[i], of_other, other[i]);
  }
  return absl::StrFormat(
      "losses of single sequences with the checksum %08x where rank %d has "
      "%08x",
      report.sequences_crc32c(), of_other, of_most.sequences_crc32c());
}

}  // namespace

std::optional<ScalarDifference> CompareScalars(
    const std::map<int, StepReport>& reports, int ranks, const Sums& sums) {
  std::map<Bits, std::vector<int>> alike;
  for (const auto& [rank, report] : reports) {
    if (report.of_others()) continue;
    alike[BitsOf(report)].push_back(rank);
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
      DifferenceOf(reports.at(others[0]), reports.at(difference.agreed),
                   difference.agreed, sums);
  if (2 * most.size() > static_cast<size_t>(ranks))
    difference.wrong = std::move(others);
  return difference;
}

}  // namespace troupe
