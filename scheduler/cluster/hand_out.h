// What has plans of ranks in it, on its way: what each of a thousand ranks is
// told is put together when it is sent, not before, so that a hand-out neither
// holds the cluster up nor fills the memory.
#ifndef TROUPE_SCHEDULER_CLUSTER_HAND_OUT_H_
#define TROUPE_SCHEDULER_CLUSTER_HAND_OUT_H_

#include <string>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_compiler.h"

namespace troupe {

// The message itself; an assignment with what it has in common with those of
// the other ranks, and its rank's part of the plan; a request to save copies
// with the part of each rank that its plans name.
SchedulerMessage Completed(const SendToWorker& send,
                           const JobCompiler& compiler);

// Of those ranks that load data, the first on each of the hosts (both by rank):
// each machine's copy of the token file is checked once.
std::vector<bool> RanksThatCheckData(const std::vector<bool>& loads_data,
                                     const std::vector<std::string>& hosts);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_HAND_OUT_H_
