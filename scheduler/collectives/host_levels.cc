#include "scheduler/collectives/host_levels.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/plan/ways.h"

namespace troupe {
namespace {

Group::Level LevelOf(const char* name, int size, int stride) {
  Group::Level level;
  level.set_name(name);
  level.set_size(size);
  level.set_stride(stride);
  return level;
}

// Whether the members of each communicator of the level are on one host.
bool IsWithinHosts(const Group::Level& level, absl::Span<const int> hosts) {
  for (int m = 0; m < static_cast<int>(hosts.size()); ++m) {
    const int first = m - PlaceOn(level, m) * level.stride();
    if (hosts[m] != hosts[first]) return false;
  }
  return true;
}

}  // namespace

bool HaveHostsToThemselves(absl::Span<const int> hosts) {
  return hosts.size() >= 2 &&
         std::set<int>(hosts.begin(), hosts.end()).size() == hosts.size();
}

absl::StatusOr<std::vector<Group::Level>> HostLevels(
    absl::Span<const int> hosts) {
  const auto why_not = [](const std::string& why) {
    return absl::FailedPreconditionError(why);
  };
  std::map<int, int> counts;  // members by host
  for (const int host : hosts) ++counts[host];
  const int members = static_cast<int>(hosts.size());
  const int on_hosts = static_cast<int>(counts.size());
  if (on_hosts <= 1) return why_not("its members are on one host");
  const auto [least, most] = std::minmax_element(
      counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  if (least->second != most->second) {
    return why_not(absl::StrCat("of its members some hosts have ", most->second,
                                " and others ", least->second));
  }
  const int on_host = members / on_hosts;
  for (const int stride : {1, on_hosts}) {
    Group::Level within = LevelOf("within hosts", on_host, stride);
    // Over shared memory it is so anyway; over sockets, where a rank has moved
    // to another host, it is to be the same.
    within.set_in_order(true);
    // As large as a host's share, each communicator then has all of a host.
    if (!IsWithinHosts(within, hosts)) continue;
    return std::vector<Group::Level>{
        within, LevelOf("across hosts", on_hosts, stride == 1 ? on_host : 1)};
  }
  return why_not("the members of a host are at uneven distances in it");
}

}  // namespace troupe
