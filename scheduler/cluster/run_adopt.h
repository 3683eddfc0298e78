// Runs that outlive the scheduler. One that is started again knows from its
// store which worker had which rank (stored_run.h), and waits: each is seated
// again as it comes back, says again what is not known to be stored, and when
// all are there the job goes on. A worker that comes without its rank, or not
// within Limits::adopt_max, is lost with it. A job that was still in its start
// has nothing to lose, and begins anew.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_ADOPT_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_ADOPT_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/run_cancel.h"
#include "scheduler/cluster/run_ready.h"
#include "scheduler/cluster/run_start.h"
#include "scheduler/cluster/run_steps.h"
#include "scheduler/cluster/run_verdicts.h"
#include "scheduler/cluster/stored_run.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class RunAdopt {
 public:
  // Borrows all but the limits.
  RunAdopt(const Limits& limits, WorkerTable& workers, JobTable& jobs,
           RunStart& start, RunSteps& steps, RunReady& ready, RunCancel& cancel,
           RunVerdicts& verdicts)
      : limits_(limits),
        workers_(workers),
        jobs_(jobs),
        start_(start),
        steps_(steps),
        ready_(ready),
        cancel_(cancel),
        verdicts_(verdicts) {}

  // The job ran when the scheduler before this one was lost: it has its run
  // again, and waits for its workers. `handed` is what the attempt's ranks got,
  // where that is known: without it a job that recovered is queued.
  // REQUIRES: it is neither queued nor ended, without a run.
  void Resume(Job& job, std::shared_ptr<const HandOut> handed, absl::Time now,
              Actions& actions);
  // A worker has registered, and holds this rank (without `ref`: none): it is
  // seated there, or told to give it up. Where it was awaited with another one,
  // that is lost. REQUIRES: it is idle.
  void CameBack(const Worker& worker, const HeldRank& held, absl::Time now,
                Actions& actions);
  // Gives up those that do not come back in time. REQUIRES that the job has a
  // run.
  void CheckAwaited(Job& job, absl::Time now, Actions& actions);

  // Whether a rank ended because a scheduler died in the middle of its job's
  // start: others were told to give theirs up, and that is not stored.
  static bool StartWasCut(const Job& job, const RankEnded& ended);
  // REQUIRES: the job is in a start from before the scheduler's own.
  void BeginAnew(Job& job, const std::string& why, absl::Time now,
                 Actions& actions);

 private:
  // Why the rank that the worker holds is not its own any more; empty: it is
  // awaited with it.
  std::string WhyNotAdopted(const Worker& worker, const HeldRank& held) const;
  void Adopt(Job& job, const Worker& worker, const HeldRank& held,
             absl::Time now, Actions& actions);
  // The seats as they were when the scheduler before this one was lost,
  void SeatAwaited(Job& job, const StoredRun& stored, absl::Time now);
  // and the seat of a rank that is back.
  void SeatAdopted(Job& job, const Worker& worker, const HeldRank& held,
                   absl::Time now);
  // The ranks that are awaited in vain, all of them or this worker's. `how` is
  // what their workers did, `why` the cause where it is known, else empty; it
  // is asked only where there are such ranks.
  void GiveUpAwaited(Job& job, const std::string& worker,
                     const std::string& how,
                     absl::FunctionRef<std::string()> why, absl::Time now,
                     Actions& actions);
  void SayAwaited(Job& job, Actions& actions);
  // No worker is awaited any more.
  void EndAdoption(Job& job, absl::Time now, Actions& actions);
  // The job was to be cancelled, and is not being stopped: it is now.
  void StopAsMeant(Job& job, absl::Time now, Actions& actions);

  const Limits limits_;
  WorkerTable& workers_;
  JobTable& jobs_;
  RunStart& start_;
  RunSteps& steps_;
  RunReady& ready_;
  RunCancel& cancel_;
  RunVerdicts& verdicts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_ADOPT_H_
