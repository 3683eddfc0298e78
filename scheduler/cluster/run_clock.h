// What time does to runs: starts and steps that take too long fail, and workers
// that do not let go are treated as lost.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_CLOCK_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_CLOCK_H_

#include <vector>

#include "absl/time/time.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/late_watch.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/run_copies.h"
#include "scheduler/cluster/run_verdicts.h"
#include "scheduler/cluster/stuck_worker.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class RunClock {
 public:
  // Borrows all but the limits.
  RunClock(const Limits& limits, const WorkerTable& workers, JobTable& jobs,
           LateWatch& late, RunCopies& copies, RunVerdicts& verdicts)
      : limits_(limits),
        workers_(workers),
        jobs_(jobs),
        late_(late),
        copies_(copies),
        verdicts_(verdicts) {}

  // REQUIRES that the job has a run. Adds to `stuck` the workers that do not
  // let go of it.
  void CheckTime(Job& job, absl::Time now, Actions& actions,
                 std::vector<StuckWorker>& stuck);
  // Asks again what the store could not do when it was asked last.
  void AskTheStoreAgain(Job& job, absl::Time now, Actions& actions);

  // The jobs that have waited for the store for as long as a start may take:
  // AwaitsStore or AwaitsCopiesStored (effects.h).
  std::vector<JobId> Unstored(absl::Time now) const;

 private:
  void CheckStart(Job& job, absl::Time now, Actions& actions);
  void CheckStopped(Job& job, absl::Time now, Actions& actions,
                    std::vector<StuckWorker>& stuck);
  void FailForHang(Job& job, absl::Time now, Actions& actions);

  const Limits limits_;
  const WorkerTable& workers_;
  JobTable& jobs_;
  LateWatch& late_;
  RunCopies& copies_;
  RunVerdicts& verdicts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_CLOCK_H_
