// Links between workers, as they are and as they would be if they were faster.
#ifndef TROUPE_SCHEDULER_SIMULATE_LINKS_H_
#define TROUPE_SCHEDULER_SIMULATE_LINKS_H_

#include "proto/cluster.pb.h"

namespace troupe {

// By how much more bandwidth links have than workers say, to see what a step
// waits for.
struct LinkGain {
  double within_hosts = 1;
  double between_hosts = 1;
};

// The same latency, and `bandwidth` times the bandwidth: of several such links
// at once, for one.
LinkRate Times(LinkRate link, double bandwidth);

// Whether somebody has measured its link to other hosts, or given it.
bool KnowsNetwork(const WorkerDescription& worker);

// To other hosts, while nobody else sends there; where nothing measured it,
// that of its adapters together, or 10 Gbit/s Ethernet.
LinkRate NetworkOf(const WorkerDescription& worker);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_LINKS_H_
