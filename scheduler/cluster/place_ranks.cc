#include "scheduler/cluster/place_ranks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "proto/base/check.h"
#include "proto/plan/mesh.h"
#include "scheduler/layouts/axes.h"

namespace troupe {
namespace {

absl::string_view TakeDigits(absl::string_view& text) {
  size_t end = 0;
  while (end < text.size() && absl::ascii_isdigit(text[end])) ++end;
  absl::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  while (digits.size() > 1 && digits.front() == '0') digits.remove_prefix(1);
  return digits;
}

}  // namespace

int64_t DeviceBytes(const Worker& worker) {
  int64_t bytes = 0;
  for (const TierBudget& budget : worker.status.description().budgets()) {
    if (budget.tier() == DEVICE) bytes += budget.bytes();
  }
  return bytes;
}

std::vector<std::vector<const Worker*>> OfOneKind(
    const std::vector<const Worker*>& candidates, int needed) {
  std::vector<const Worker*> gpus;
  std::vector<const Worker*> cpus;
  for (const Worker* worker : candidates) {
    const bool gpu = worker->status.description().has_gpu();
    (gpu ? gpus : cpus).push_back(worker);
  }
  std::vector<std::vector<const Worker*>> kinds;
  for (const auto& kind : {gpus, cpus}) {
    if (!kind.empty() && static_cast<int>(kind.size()) >= needed) {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

int MostOfOneKind(const std::vector<const Worker*>& candidates) {
  size_t most = 0;
  for (const auto& alike : OfOneKind(candidates, 1)) {
    most = std::max(most, alike.size());
  }
  return static_cast<int>(most);
}

std::vector<const Worker*> LargestOf(std::vector<const Worker*> candidates,
                                     int count) {
  CHECK_LE(count, static_cast<int>(candidates.size()));
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Worker* a, const Worker* b) {
                     return DeviceBytes(*a) > DeviceBytes(*b);
                   });
  candidates.resize(count);
  std::sort(candidates.begin(), candidates.end(),
            [](const Worker* a, const Worker* b) { return a->id < b->id; });
  return candidates;
}

bool NaturalLess(absl::string_view a, absl::string_view b) {
  const absl::string_view whole_a = a;
  const absl::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (absl::ascii_isdigit(a[0]) && absl::ascii_isdigit(b[0])) {
      const absl::string_view da = TakeDigits(a);
      const absl::string_view db = TakeDigits(b);
      if (da.size() != db.size()) return da.size() < db.size();
      if (da != db) return da < db;
      continue;
    }
    if (a[0] != b[0]) return a[0] < b[0];
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // differ in leading zeros only
}

WorkersByHost::WorkersByHost(const std::vector<const Worker*>& candidates)
    : count_(static_cast<int>(candidates.size())) {
  std::map<std::string, Host> by_host;
  for (const Worker* worker : candidates) {
    by_host[worker->status.description().host()].push_back(worker);
  }
  by_name_.reserve(by_host.size());
  for (auto& [host, workers] : by_host) {
    std::sort(workers.begin(), workers.end(),
              [](const Worker* a, const Worker* b) {
                return NaturalLess(a->name(), b->name());
              });
    by_name_.push_back(std::move(workers));
  }
  by_size_.resize(by_name_.size());
  std::iota(by_size_.begin(), by_size_.end(), size_t{0});
  std::stable_sort(by_size_.begin(), by_size_.end(), [&](size_t a, size_t b) {
    return by_name_[a].size() > by_name_[b].size();
  });
}

std::vector<int> WorkersByHost::SharesOf(int count, int group,
                                         bool even) const {
  if (count % group != 0) return {};
  const auto room = [&](size_t host) {
    return static_cast<int>(by_name_[by_size_[host]].size()) / group;
  };
  const int groups = count / group;
  size_t hosts = 0;
  for (int fit = 0; fit < groups; ++hosts) {
    if (hosts == by_size_.size()) return {};
    fit += room(hosts);
  }
  std::vector<int> shares(hosts);
  int left = groups;
  const auto take = [&](size_t host, int most) {
    shares[host] = std::min(room(host), most);
    left -= shares[host];
  };
  if (even) {  // the smallest first
    for (size_t i = hosts; i-- > 0;) take(i, left / static_cast<int>(i + 1));
  } else {
    for (size_t i = 0; i < hosts; ++i) take(i, left);
  }
  for (int& share : shares) share *= group;
  return shares;
}

std::vector<const Worker*> WorkersByHost::Place(
    int count, const RanksTogether& together) const {
  CHECK_LE(count, count_);
  const Host* tightest = nullptr;
  for (const Host& host : by_name_) {
    if (static_cast<int>(host.size()) < count) continue;
    if (tightest == nullptr || host.size() < tightest->size()) tightest = &host;
  }
  std::vector<const Worker*> placed;
  if (tightest != nullptr) {
    placed.assign(tightest->begin(), tightest->begin() + count);
    return placed;
  }
  std::vector<int> shares;
  for (const int group : together.groups) {
    if (!shares.empty()) break;
    shares = SharesOf(count, group, together.keeps_copies);
  }
  if (shares.empty()) shares = SharesOf(count, 1, together.keeps_copies);
  for (size_t i = 0; i < shares.size(); ++i) {
    const Host& host = by_name_[by_size_[i]];
    placed.insert(placed.end(), host.begin(), host.begin() + shares[i]);
  }
  return placed;
}

std::vector<const Worker*> PlaceRanks(
    const std::vector<const Worker*>& candidates, int count,
    const RanksTogether& together) {
  return WorkersByHost(candidates).Place(count, together);
}

RanksTogether RanksTogetherOf(const JobSpec& job) {
  const ParallelismSpec& parallelism = job.parallelism();
  RanksTogether together;
  int group = 1;
  const std::vector<SharedAxis> axes = SharedAxes(parallelism);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (!axis->row->on_one_host) break;
    // No host has that number.
    if (axis->size > kRanksMax / group) break;
    group *= axis->size;
    together.groups.insert(together.groups.begin(), group);
  }
  const RecoverySpec& recovery = job.recovery();
  // By default, unless the job has servers of its own.
  const bool copies = recovery.has_copies() ? recovery.copies() > 0
                                            : parallelism.servers() == 0;
  together.keeps_copies = copies && (job.has_recovery() || job.has_elastic());
  return together;
}

}  // namespace troupe
