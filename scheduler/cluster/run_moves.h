// Lets jobs go on with fewer workers than they have ranks, or more (`elastic`),
// without one that leaves, or give their workers to other jobs. Plans for other
// numbers of ranks go on from what any saved, so the way from one to the next
// is a checkpoint: of the end of a step, where all ranks are there; else of the
// copies that are left (run_copies.h). The job is queued meanwhile, and
// planned anew as it starts (cluster.cc).
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_MOVES_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_MOVES_H_

#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/phase_effects.h"
#include "scheduler/cluster/policy/who_gives_way.h"
#include "scheduler/cluster/run_copies.h"
#include "scheduler/cluster/run_start.h"
#include "scheduler/cluster/run_steps.h"
#include "scheduler/cluster/run_verdicts.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class RunMoves {
 public:
  // Borrows all but the limits.
  RunMoves(const Limits& limits, WorkerTable& workers, JobTable& jobs,
           PhaseEffects& effects, RunStart& start, RunSteps& steps,
           RunCopies& copies, RunVerdicts& verdicts)
      : limits_(limits),
        workers_(workers),
        jobs_(jobs),
        effects_(effects),
        start_(start),
        steps_(steps),
        copies_(copies),
        verdicts_(verdicts) {}

  // The job is saved at the end of its step, and goes on with other workers: it
  // is queued. REQUIRES: MayMove, and it is not being stopped.
  void SaveAndMove(Job& job, const std::string& why, absl::Time now,
                   Actions& actions);
  // What there is of the job's state is saved, and it moves; it may be in the
  // middle of a start or a recovery. REQUIRES: MayMove.
  void MoveAsItIs(Job& job, const std::string& why, absl::Time now,
                  Actions& actions);
  // No others are soon to come: those with `elastic` give up the plan that they
  // had for one that needs fewer. True: some job is queued now.
  bool NarrowWaiting(absl::Time now, Actions& actions);
  // Of jobs that wait for workers which others hold, one is saved, if need be,
  // and gives its own away. `next` in the queue may be helped, too. True: it is
  // queued now.
  bool GiveWay(const absl::optional<NextInQueue>& next, absl::Time now,
               Actions& actions);
  // None goes on with other workers from here on.
  void Drain() { draining_ = true; }

  // Whether it moves as soon as its ranks have let go, though it could go on.
  bool MovesOn(const Job& job) const;
  // For the plan that it gives up there are too few workers: what copies there
  // are become a checkpoint, from which a narrower one goes on. REQUIRES that
  // it is between two attempts.
  void Narrow(Job& job, absl::Time now, Actions& actions);
  // Nothing is to be saved, or it is: the job is queued, for another plan, or
  // cancelled. REQUIRES the same.
  void Move(Job& job, const std::string& why, absl::Time now, Actions& actions);

 private:
  // Whether there are as many workers as it needs at least.
  bool MayNarrow(const Job& job) const;
  // Whether nothing is lost where it gives up its workers while it waits for
  // others: its copies can be saved, or there is nothing to save.
  bool LosesNothing(const Job& job, absl::Time now) const;
  WaitingJob AsWaiting(const Job& job, absl::Time now) const;

  const Limits limits_;
  bool draining_ = false;
  WorkerTable& workers_;
  JobTable& jobs_;
  PhaseEffects& effects_;
  RunStart& start_;
  RunSteps& steps_;
  RunCopies& copies_;
  RunVerdicts& verdicts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_MOVES_H_
