// What carries each group of a plan.
//
//   ranks on CPUs              memory, where they share some, else sockets
//   on GPUs, one for each      NCCL
//   on GPUs that they share    as on CPUs, staged through the host: NCCL does
//                              not join two ranks of one GPU
//   copies of states           as on CPUs: they lie in the host's memory
//
// Ranks share memory where their workers gave the same memory domain
// when they registered (WorkerDescription.memory_domain): the same host name
// would not do, as containers have names of their own, or all the same one.
#ifndef TROUPE_SCHEDULER_PLANNER_CHOOSE_BACKENDS_H_
#define TROUPE_SCHEDULER_PLANNER_CHOOSE_BACKENDS_H_

#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

using Groups = google::protobuf::RepeatedPtrField<Group>;

// Whether any of these workers are on one GPU, so that a group may be staged.
bool AnyShareAGpu(const std::vector<WorkerDescription>& workers);

// Sets the carriers of every group of a mesh, "shared_memory", "gloo" or
// "nccl", and whether they are staged; and of each communicator of its levels,
// where it has some (choose_ways.h): those stay as they are, wherever ranks
// have moved. Groups with levels are on no NCCL: their sums would be taken in
// another order. workers[r] is to fill rank r. REQUIRES CheckDevices, and
// groups without carriers.
void ChooseBackends(const std::vector<WorkerDescription>& workers,
                    const Mesh& mesh, Groups& groups);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_CHOOSE_BACKENDS_H_
