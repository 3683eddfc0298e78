#include "proto/plan/copy_losses.h"

#include <algorithm>
#include <functional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/plan/copies.h"
#include "proto/plan/mesh.h"

namespace troupe {
namespace {

constexpr size_t kHostsNamed = 3;

bool AreSeveral(absl::Span<const std::string> hosts) {
  return std::any_of(
      hosts.begin(), hosts.end(),
      [&hosts](const std::string& host) { return host != hosts.front(); });
}

// `mirror_of`: which rank holds a rank's copy, too; empty: none does.
std::vector<std::string> HostsLost(
    const Plan& plan, absl::Span<const std::string> hosts,
    const std::function<int(int rank)>& mirror_of) {
  const int ranks = MeshSize(plan.mesh());
  CHECK_EQ(hosts.size(), static_cast<size_t>(ranks));
  std::set<std::string> lost;
  std::vector<bool> seen(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    if (seen[rank]) continue;
    // All that hold the same state; it is elsewhere if a copy of any is.
    std::vector<int> same = RanksAlike(plan, rank);
    same.push_back(rank);
    const std::string& host = hosts[rank];
    bool elsewhere = false;
    for (const int member : same) {
      seen[member] = true;
      elsewhere |= hosts[member] != host ||
                   (mirror_of && hosts[mirror_of(member)] != host);
    }
    if (!elsewhere) lost.insert(host);
  }
  return {lost.begin(), lost.end()};
}

}  // namespace

std::vector<std::string> HostsNotOutlived(const Plan& plan,
                                          absl::Span<const std::string> hosts,
                                          bool mirrors) {
  if (!mirrors) return HostsLost(plan, hosts, nullptr);
  return HostsLost(plan, hosts,
                   [&plan](int rank) { return MirrorOf(plan, rank); });
}

bool WantsOpposite(const Plan& plan, absl::Span<const std::string> hosts) {
  if (AxisSize(plan.mesh(), "pipeline") < 2 || !AreSeveral(hosts)) return false;
  const size_t lost = HostsNotOutlived(plan, hosts, /*mirrors=*/true).size();
  if (lost == 0 || !MayMirrorOpposite(plan)) return false;
  const int last = MeshSize(plan.mesh()) - 1;
  return HostsLost(plan, hosts, [last](int rank) {
           return last - rank;
         }).size() < lost;
}

bool WantsMirrors(const Plan& plan, absl::Span<const std::string> hosts) {
  if (NeedsMirrors(plan)) return true;
  return AreSeveral(hosts) &&
         HostsNotOutlived(plan, hosts, /*mirrors=*/true).size() <
             HostsNotOutlived(plan, hosts, /*mirrors=*/false).size();
}

std::string LossesOutlived(const Plan& plan,
                           absl::Span<const std::string> hosts, bool mirrors) {
  constexpr char kWorker[] = "the loss of any one worker";
  if (hosts.empty()) return kWorker;
  if (!AreSeveral(hosts)) {
    return absl::StrCat(kWorker, ", but not of their only host");
  }
  std::vector<std::string> lost = HostsNotOutlived(plan, hosts, mirrors);
  if (lost.empty()) return absl::StrCat(kWorker, " or host");
  const size_t others = lost.size() - std::min(lost.size(), kHostsNamed);
  lost.resize(lost.size() - others);
  return absl::StrCat(kWorker, ", but not of host ",
                      absl::StrJoin(lost, " or "),
                      others == 0 ? "" : absl::StrCat(" or ", others, " more"));
}

}  // namespace troupe
