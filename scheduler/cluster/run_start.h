// Begins attempts, and takes them back to the queue: which worker has which
// rank, what the ranks get, and that nobody hears of it before it is stored.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_START_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_START_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/phase_effects.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class RunStart {
 public:
  // Borrows all but the limits.
  RunStart(const Limits& limits, WorkerTable& workers, JobTable& jobs,
           PhaseEffects& effects)
      : limits_(limits), workers_(workers), jobs_(jobs), effects_(effects) {}

  // Gives rank r to workers[r], which hear of it when it is stored that they
  // have it. REQUIRES: the job is queued, they are idle.
  void Start(Job& job, const CompiledJob& compiled,
             const std::vector<const Worker*>& workers, absl::Time now,
             Actions& actions);
  // It is stored. REQUIRES: AwaitsStore (effects.h).
  void HandOut(Job& job, absl::Time now, Actions& actions);
  // It is not, and nobody has heard of it: the job is queued again, and its
  // workers are free; one that recovers keeps them, and asks again. `why` is
  // what it waits for. REQUIRES: AwaitsStore.
  void NotStored(Job& job, const std::string& why, absl::Time now,
                 Actions& actions);
  // NotStored, of a job that has not begun.
  void Withdraw(Job& job, const std::string& why, absl::Time now,
                Actions& actions);

  // The next attempt begins: that is to be stored. REQUIRES: the job has no
  // run.
  void BeginRun(Job& job, PhaseEvent event, const Plan& outline,
                absl::Time now);
  // Fills the run's seats.
  void Seat(Job& job, const std::vector<const Worker*>& workers,
            absl::Time now);
  // Takes the run from the job, whose workers are free then.
  void BackToQueue(Job& job, PhaseEvent event, const std::string& why,
                   absl::Time now, Actions& actions);

 private:
  std::shared_ptr<const troupe::HandOut> MakeHandOut(
      const Job& job, const CompiledJob& compiled) const;

  const Limits limits_;
  WorkerTable& workers_;
  JobTable& jobs_;
  PhaseEffects& effects_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_START_H_
