#include "proto/plan/copy_losses.h"

#include <algorithm>
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

}  // namespace

std::vector<std::string> HostsNotOutlived(const Plan& plan,
                                          absl::Span<const std::string> hosts,
                                          bool mirrors) {
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
                   (mirrors && hosts[MirrorOf(plan.mesh(), member)] != host);
    }
    if (!elsewhere) lost.insert(host);
  }
  return {lost.begin(), lost.end()};
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
