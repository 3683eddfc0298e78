#include "scheduler/collectives/prime_levels.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/collectives/host_levels.h"

namespace troupe {
namespace {

std::vector<int> PrimeFactors(int number) {
  std::vector<int> factors;
  for (int factor = 2; factor * factor <= number; ++factor) {
    while (number % factor == 0) {
      factors.push_back(factor);
      number /= factor;
    }
  }
  if (number > 1) factors.push_back(number);
  return factors;
}

// Cuts a level into its prime factors, neighbours first.
void AddFactors(const Group::Level& level, std::vector<Group::Level>& levels) {
  const std::vector<int> sizes = PrimeFactors(level.size());
  int stride = level.stride();
  for (const int size : sizes) {
    Group::Level& factor = levels.emplace_back(level);
    factor.set_size(size);
    factor.set_stride(stride);
    if (sizes.size() > 1) {
      factor.set_name(absl::StrCat(
          level.name(), level.name().empty() ? "" : ", ", stride, " apart"));
    }
    stride *= size;
  }
}

}  // namespace

absl::StatusOr<LaidWay> PrimeLevels(const GroupExchange& exchange) {
  const absl::Span<const int> hosts = exchange.hosts;
  const bool on_one_host =
      std::all_of(hosts.begin(), hosts.end(),
                  [&](int host) { return host == hosts.front(); });
  if (on_one_host) {
    return absl::FailedPreconditionError("its members are on one host");
  }
  LaidWay way;
  Group::Level across;
  across.set_size(static_cast<int>(hosts.size()));
  across.set_stride(1);
  if (!HaveHostsToThemselves(hosts)) {
    if (const auto on_hosts = HostLevels(hosts); on_hosts.ok()) {
      // Memory that members share knows no messages: its level stays whole.
      way.levels.push_back(on_hosts->front());
      across = on_hosts->back();
    }
  }
  AddFactors(across, way.levels);
  if (way.levels.size() > 1) return way;
  way.why_flat = absl::StrCat("its members are ", hosts.size(),
                              ", which is no product of smaller numbers");
  way.levels.clear();
  return way;
}

}  // namespace troupe
