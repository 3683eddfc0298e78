// Machines and their links as a prediction takes them: what workers measured or
// a cluster file gives, and what is assumed where nobody says anything. For
// people: the simulator itself asks links.h and adapters.h.
#ifndef TROUPE_SCHEDULER_SIMULATE_TOPOLOGY_H_
#define TROUPE_SCHEDULER_SIMULATE_TOPOLOGY_H_

#include <vector>

#include "absl/types/span.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "proto/status.pb.h"

namespace troupe {

// Of those that are idle or busy: hosts by name, workers in their order. Of
// hosts that `measured` has, its pairs.
Topology TopologyOf(
    const google::protobuf::RepeatedPtrField<WorkerStatus>& workers,
    const Topology& measured = {});

// Of each sort of link that these use among each other, the slowest, and how
// many of the sort there are: within hosts, from a worker to other hosts, and
// adapters that workers share. None for one worker.
std::vector<LinkUsed> LinksUsed(absl::Span<const WorkerDescription> workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_TOPOLOGY_H_
