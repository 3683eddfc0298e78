// Which adapters of hosts carry what ranks send to others, and how much of them
// each rank uses. A rank has its own link, which says how fast it is alone
// (links.h); an adapter is listed here where more than one rank uses it, or a
// rank uses several.
#ifndef TROUPE_SCHEDULER_SIMULATE_ADAPTERS_H_
#define TROUPE_SCHEDULER_SIMULATE_ADAPTERS_H_

#include <vector>

#include "absl/types/span.h"
#include "proto/cluster.pb.h"
#include "proto/plan/rank_classes.h"

namespace troupe {

struct Adapters {
  // Bytes a second, in each direction, by adapter.
  std::vector<double> rates;
  // By rank: those over which its bytes go evenly. Empty: no rank has any.
  std::vector<std::vector<int>> of_rank;
};

// workers[r] fills rank r, on the host of that number. Of workers that say
// neither their link to other hosts nor adapters, those of a host share one
// that is assumed. Rates are `gain` times what is said.
Adapters AdaptersOf(absl::Span<const WorkerDescription> workers,
                    const std::vector<int>& hosts, double gain);

// The same where one rank of each class stands for all of it: on an adapter it
// takes as much time as all of its class that use that one.
struct AdapterUse {
  int adapter = 0;
  double ns_per_byte = 0;  // of its own, in each direction
};
struct AdapterUses {
  int adapters = 0;
  // By rank, of first ranks only. Empty: no rank uses any.
  std::vector<std::vector<AdapterUse>> of_rank;
};

// Adapters that the same classes use alike are one. Of classes that tell ranks
// apart by their adapters (RankTraits::shares), each uses one kind; of others,
// where ranks of one class are on unlike hosts, its first uses all of them.
AdapterUses UsesOf(const Adapters& adapters, const RankClasses& classes);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_ADAPTERS_H_
