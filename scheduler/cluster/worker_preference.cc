#include "scheduler/cluster/worker_preference.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

template <typename Drops>
std::vector<const Worker*> Keep(std::vector<const Worker*> workers,
                                const Drops& drops) {
  workers.erase(std::remove_if(workers.begin(), workers.end(), drops),
                workers.end());
  return workers;
}

}  // namespace

std::set<std::string> NamesOf(const FailedStarts& failed) {
  std::set<std::string> names;
  for (const auto& [worker, why] : failed) names.insert(worker);
  return names;
}

std::string WhereStartsFailed(const FailedStarts& failed) {
  std::string text;
  for (const auto& [worker, why] : failed) {
    absl::StrAppend(&text, "; on ", worker, " its start failed: ", why);
  }
  return text;
}

std::string WhenItTriesThatAgain(absl::Time at) {
  return absl::StrCat("; it tries that again at ",
                      absl::FormatTime("%H:%M:%S UTC", at, absl::UTCTimeZone()),
                      ", if no other worker is there");
}

std::string HowToStartThereAgain(const FailedStarts& failed) {
  if (failed.empty()) return "";
  return absl::StrCat("; after a repair troupe workers uncordon ",
                      failed.size() == 1 ? failed.begin()->first : "NAME",
                      " lets it start there again");
}

std::vector<const Worker*> Without(std::vector<const Worker*> candidates,
                                   const std::set<std::string>& names) {
  if (names.empty()) return candidates;
  return Keep(std::move(candidates), [&](const Worker* worker) {
    return names.count(worker->name()) > 0;
  });
}

std::vector<const Worker*> Without(std::vector<const Worker*> candidates,
                                   const FailedStarts& failed) {
  return Without(std::move(candidates), NamesOf(failed));
}

std::vector<const Worker*> LeastDoubted(std::vector<const Worker*> candidates,
                                        int needed) {
  if (needed <= 0 || static_cast<int>(candidates.size()) <= needed) {
    return candidates;
  }
  std::vector<int> doubts;
  for (const Worker* worker : candidates) doubts.push_back(worker->doubt);
  std::nth_element(doubts.begin(), doubts.begin() + needed - 1, doubts.end());
  const int most = doubts[needed - 1];
  return Keep(std::move(candidates),
              [most](const Worker* worker) { return worker->doubt > most; });
}

}  // namespace troupe
