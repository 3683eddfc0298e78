// Which workers take a job's ranks. All on one host where one has room enough
// (the fullest such host, so that large gaps stay whole), otherwise on as few
// hosts as possible, largest first, and as evenly as these allow: so that the
// neighbours of a group are on one host, and no host has so many of all ranks
// that their copies find no place on others (proto/plan/copies.h). Ranks of one
// host are neighbours and follow the workers' names, worker-2 before worker-10,
// so that people recognise them.
#ifndef TROUPE_SCHEDULER_CLUSTER_PLACEMENT_H_
#define TROUPE_SCHEDULER_CLUSTER_PLACEMENT_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// Places some of these workers, again and again.
class WorkersByHost {
 public:
  explicit WorkersByHost(const std::vector<const Worker*>& candidates);
  // The workers of ranks 0 .. count - 1. REQUIRES: count <= candidates.size().
  std::vector<const Worker*> Place(int count) const;

 private:
  using Host = std::vector<const Worker*>;  // by name
  std::vector<Host> by_name_;
  std::vector<size_t> by_size_;  // where in it; largest first
  int count_ = 0;
};

// The same, once.
std::vector<const Worker*> PlaceRanks(
    const std::vector<const Worker*>& candidates, int count);

// The `count` candidates whose devices have the most memory, by id.
// REQUIRES: count <= candidates.size().
std::vector<const Worker*> LargestOf(std::vector<const Worker*> candidates,
                                     int count);

// The candidates on GPUs, and those on CPUs, each where they are enough: who
// works together is of one kind.
std::vector<std::vector<const Worker*>> OfOneKind(
    const std::vector<const Worker*>& candidates, int needed);

// So many of them are of one kind, at most.
int MostOfOneKind(const std::vector<const Worker*>& candidates);

// Bytes of its DEVICE tier.
int64_t DeviceBytes(const Worker& worker);

// Compares runs of digits as numbers. A strict weak order.
bool NaturalLess(absl::string_view a, absl::string_view b);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_PLACEMENT_H_
