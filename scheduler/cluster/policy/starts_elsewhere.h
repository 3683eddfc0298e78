// Whether a job whose start failed for a cause of its workers is begun on
// others (worker_blame.h).
#ifndef TROUPE_SCHEDULER_CLUSTER_POLICY_STARTS_ELSEWHERE_H_
#define TROUPE_SCHEDULER_CLUSTER_POLICY_STARTS_ELSEWHERE_H_

#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// Both REQUIRE that the job has a run. `starts_max`: as often as one is begun.

// Other workers could run it, and it has not been begun too often.
bool MayStartElsewhere(const Job& job, const WorkerTable& workers,
                       int starts_max);
// Whether the job starts once more when its ranks have let go, there or planned
// anew, though it does not recover: it can still be cancelled.
bool StartsOnceMore(const Job& job, const WorkerTable& workers, int starts_max);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_POLICY_STARTS_ELSEWHERE_H_
