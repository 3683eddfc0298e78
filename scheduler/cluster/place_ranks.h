// Which workers take a job's ranks. All on one host where one has room enough
// (the fullest such host, so that large gaps stay whole), otherwise on as few
// hosts as possible, largest first. Ranks that exchange something within each
// layer are on one host, if need be on one host more; and where the job keeps
// copies, the hosts have shares as even as that and their sizes allow, so that
// the copies of a host's ranks find places on other hosts
// (proto/plan/copies.h). Ranks of one host are neighbours and follow the
// workers' names, worker-2 before worker-10, so that people recognise them.
#ifndef TROUPE_SCHEDULER_CLUSTER_PLACE_RANKS_H_
#define TROUPE_SCHEDULER_CLUSTER_PLACE_RANKS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// What a job asks of the places of its ranks.
struct RanksTogether {
  // Sizes of groups of consecutive ranks, largest first, each a multiple of the
  // next. Of the first size for which hosts have room no group is cut.
  std::vector<int> groups;
  bool keeps_copies = false;
};
// As far as the job says that before it is planned: the groups are those of
// tensor parallelism, of attention by ulysses, and of experts.
RanksTogether RanksTogetherOf(const JobSpec& job);

// Places some of these workers, again and again.
class WorkersByHost {
 public:
  explicit WorkersByHost(const std::vector<const Worker*>& candidates);
  // The workers of ranks 0 .. count - 1. REQUIRES: count <= candidates.size().
  std::vector<const Worker*> Place(int count,
                                   const RanksTogether& together = {}) const;

 private:
  using Host = std::vector<const Worker*>;  // by name
  // How many of `count` ranks each host has, whole groups of `group`; in the
  // order of by_size_. Empty: there is no room for whole groups.
  std::vector<int> SharesOf(int count, int group, bool even) const;

  std::vector<Host> by_name_;
  std::vector<size_t> by_size_;  // where in it; largest first
  int count_ = 0;
};

// The same, once.
std::vector<const Worker*> PlaceRanks(
    const std::vector<const Worker*>& candidates, int count,
    const RanksTogether& together = {});

// The `count` candidates whose devices have the most memory, by id.
// REQUIRES: count <= candidates.size().
std::vector<const Worker*> LargestOf(std::vector<const Worker*> candidates,
                                     int count);

// The candidates on GPUs, and those on CPUs, each where they are enough: the
// workers of a job are of one kind.
std::vector<std::vector<const Worker*>> OfOneKind(
    const std::vector<const Worker*>& candidates, int needed);

// How many of them are of one kind, at most.
int MostOfOneKind(const std::vector<const Worker*>& candidates);

// Bytes of its DEVICE tier.
int64_t DeviceBytes(const Worker& worker);

// Compares runs of digits as numbers. A strict weak order.
bool NaturalLess(absl::string_view a, absl::string_view b);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_PLACE_RANKS_H_
