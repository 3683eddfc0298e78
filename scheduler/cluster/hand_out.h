// An assignment on its way: what each of a thousand ranks is told is put
// together when it is sent, not before, so that a hand-out neither holds the
// cluster up nor fills the memory.
#ifndef TROUPE_SCHEDULER_CLUSTER_HAND_OUT_H_
#define TROUPE_SCHEDULER_CLUSTER_HAND_OUT_H_

#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_compiler.h"

namespace troupe {

// The message itself; an assignment with what it has in common with those of
// the other ranks, and its rank's part of the plan.
SchedulerMessage Completed(const SendToWorker& send,
                           const JobCompiler& compiler);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_HAND_OUT_H_
