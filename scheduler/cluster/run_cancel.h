// What is asked to end while it is well: a job, by its user, or a worker, by
// its host.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_CANCEL_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_CANCEL_H_

#include <string>

#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/run_moves.h"
#include "scheduler/cluster/run_places.h"
#include "scheduler/cluster/run_verdicts.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class RunCancel {
 public:
  // Borrows all but the limits.
  RunCancel(const Limits& limits, WorkerTable& workers, JobTable& jobs,
            RunMoves& moves, RunPlaces& places, RunVerdicts& verdicts)
      : limits_(limits),
        workers_(workers),
        jobs_(jobs),
        moves_(moves),
        places_(places),
        verdicts_(verdicts) {}

  // REQUIRES: the job has a run. Stops it, if it is not being stopped, or only
  // with a checkpoint.
  void Cancel(Job& job, absl::Time now, Actions& actions);
  // The same, with a checkpoint of the step in progress. A job that has not
  // begun has nothing to save. `why` opens the job's reason.
  void SaveAndCancel(Job& job, const std::string& why, absl::Time now,
                     Actions& actions);
  // Jobs are saved and end, or are queued for the next scheduler. None goes on
  // with other workers from here on.
  void Drain(const std::string& why, absl::Time now, Actions& actions);
  // The worker was asked to end.
  void Leave(WorkerId from, const Leaving& leaving, absl::Time now,
             Actions& actions);

 private:
  // Of a job that is about to fail: a user does not want it to go on.
  void StartNoMore(Job& job, Actions& actions);
  // Whether the job starts once more when its ranks have let go, though it does
  // not recover: it can still be cancelled.
  bool StartsOnceMore(const Job& job) const;
  void LeaveRank(Job& job, int rank, const std::string& why, absl::Time now,
                 Actions& actions);
  void LeaveKept(Job& job, int rank, const std::string& why, absl::Time now,
                 Actions& actions);

  const Limits limits_;
  WorkerTable& workers_;
  JobTable& jobs_;
  RunMoves& moves_;
  RunPlaces& places_;
  RunVerdicts& verdicts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_CANCEL_H_
