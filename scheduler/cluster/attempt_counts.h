// What a job counts from one attempt to the next: restarts, how long it stands
// still, and when it saves again what a disk did not take.
#ifndef TROUPE_SCHEDULER_CLUSTER_ATTEMPT_COUNTS_H_
#define TROUPE_SCHEDULER_CLUSTER_ATTEMPT_COUNTS_H_

#include "absl/time/time.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"

namespace troupe {

// Its run goes on with another attempt, which costs a restart.
void CountRestart(Job& job);

// Its run was stopped, and it is to go on with another one; until that goes on.
void StandStill(Job& job);
void GoOn(Job& job, absl::Time now, JobTable& jobs, Actions& actions);

// A disk did not take what was to be saved: not again at once.
void PauseMoves(Job& job, absl::Time now);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_ATTEMPT_COUNTS_H_
