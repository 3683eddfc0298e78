// The start of an attempt, as its ranks tell it: they meet, are ready one after
// the other, and when all are the job trains.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_READY_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_READY_H_

#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/run_verdicts.h"
#include "scheduler/cluster/worker_blame.h"

namespace troupe {

class RunReady {
 public:
  // Borrows all but the limits.
  RunReady(const Limits& limits, JobTable& jobs, WorkerBlame& blame,
           RunVerdicts& verdicts)
      : limits_(limits), jobs_(jobs), blame_(blame), verdicts_(verdicts) {}

  // --- A rank that the run has says this ---

  void Ready(Job& job, const RankReady& ready, absl::Time now,
             Actions& actions);
  // Becomes an event of the job, as far as an attempt may have some.
  void Notice(Job& job, const RankNotice& notice, absl::Time now,
              Actions& actions);
  void Set(Job& job, const StoreSet& set, absl::Time now, Actions& actions);
  void Get(Job& job, const StoreGet& get, absl::Time now, Actions& actions);

  // The last rank is ready, and said this, or is not awaited any more.
  void TrainIfAllReady(Job& job, absl::Time now, Actions& actions);

 private:
  void SetFirst(Job& job, const StoreSet& set, absl::Time now,
                Actions& actions);
  void SayRecovered(Job& job, absl::Time now, Actions& actions);
  void SayMoved(Job& job, absl::Time now, Actions& actions);

  const Limits limits_;
  JobTable& jobs_;
  WorkerBlame& blame_;
  RunVerdicts& verdicts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_READY_H_
