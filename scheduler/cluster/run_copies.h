// Saves the copies that the workers of a job keep, when its ranks have let go,
// as a checkpoint: each writes those that it keeps, one commits, and when that
// is stored the job moves. Copies that cannot be saved stay in memory for a
// worker that may come.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_COPIES_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_COPIES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/phase_effects.h"
#include "scheduler/cluster/run_steps.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class RunMoves;
class RunPlaces;

class RunCopies {
 public:
  // Borrows all but the limits.
  RunCopies(const Limits& limits, WorkerTable& workers, JobTable& jobs,
            PhaseEffects& effects, RunSteps& steps, RunMoves& moves,
            RunPlaces& places)
      : limits_(limits),
        workers_(workers),
        jobs_(jobs),
        effects_(effects),
        steps_(steps),
        moves_(moves),
        places_(places) {}

  // REQUIRES phase::AwaitPlaces.
  void SaveCopiesOf(Job& job, const Recovery& newest, absl::Time now,
                    Actions& actions);
  // It moves when it is stored that its newest checkpoint is there. REQUIRES
  // that it is between two attempts.
  void StoreCheckpoint(Job& job, absl::Time now, Actions& actions);
  // That is stored: the job moves. Or not, and it asks again. REQUIRES:
  // AwaitsCopiesStored (effects.h).
  void CopiesStored(Job& job, const absl::Status& stored, absl::Time now,
                    Actions& actions);
  // An answer to SaveCopies.
  void HandleCopiesSaved(WorkerId from, const CopiesSaved& saved,
                         absl::Time now, Actions& actions);
  // Gives them up where the answers do not come in time. REQUIRES
  // phase::SavingCopies.
  void CheckTime(Job& job, absl::Time now, Actions& actions);

 private:
  // Copies are not saved: a disk does not take them now, a worker has not
  // answered in time, or they cannot be saved later either.
  enum class Unsaved { kDisk, kLate, kForGood };
  void GiveUpCopies(Job& job, Unsaved how, const std::string& why,
                    absl::Time now, Actions& actions);
  void CommitCopiesOf(Job& job, Actions& actions);
  // They are a checkpoint, in time or later.
  void CopiesCommitted(Job& job, const CopiesSaved& saved, absl::Time now,
                       Actions& actions);

  const Limits limits_;
  WorkerTable& workers_;
  JobTable& jobs_;
  PhaseEffects& effects_;
  RunSteps& steps_;
  RunMoves& moves_;
  RunPlaces& places_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_COPIES_H_
