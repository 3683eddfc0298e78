// Which of the workers that could carry out a job should be asked first. Pure
// functions; where on the hosts its ranks go is said by place_ranks.h.
#ifndef TROUPE_SCHEDULER_CLUSTER_WORKER_PREFERENCE_H_
#define TROUPE_SCHEDULER_CLUSTER_WORKER_PREFERENCE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// The workers, by name, where a job's start failed for a cause of theirs, and
// why: it is tried on others.
using FailedStarts = std::map<std::string, std::string>;

std::set<std::string> NamesOf(const FailedStarts& failed);
// "; on w0 its start failed: EIO", for each.
std::string WhereStartsFailed(const FailedStarts& failed);
// "; it tries that again at 12:00:00 UTC, if no other worker is there"
std::string WhenItTriesThatAgain(absl::Time at);
// What a person who has mended such a worker does; empty where there is none.
std::string HowToStartThereAgain(const FailedStarts& failed);

// The candidates without those, in their order.
std::vector<const Worker*> Without(std::vector<const Worker*> candidates,
                                   const std::set<std::string>& names);
std::vector<const Worker*> Without(std::vector<const Worker*> candidates,
                                   const FailedStarts& failed);

// Those of which there is the least doubt: as few of the doubted ones are left
// in as still make `needed` candidates. All, where there are fewer than that.
std::vector<const Worker*> LeastDoubted(std::vector<const Worker*> candidates,
                                        int needed);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_WORKER_PREFERENCE_H_
