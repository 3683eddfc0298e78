// Lets a job go on after a failure: on the workers that are left, and others in
// the places of those that are lost. Until every place has one it waits, with
// what its workers keep. A worker on which its start failed is avoided
// (worker_blame.h), as long as others could take the place.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_PLACES_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_PLACES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/phase_effects.h"
#include "scheduler/cluster/run_moves.h"
#include "scheduler/cluster/run_start.h"
#include "scheduler/cluster/run_steps.h"
#include "scheduler/cluster/run_verdicts.h"
#include "scheduler/cluster/worker_preference.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class RunPlaces {
 public:
  // Borrows all but the limits.
  RunPlaces(const Limits& limits, WorkerTable& workers, JobTable& jobs,
            PhaseEffects& effects, RunStart& start, RunSteps& steps,
            RunMoves& moves, RunVerdicts& verdicts)
      : limits_(limits),
        workers_(workers),
        jobs_(jobs),
        effects_(effects),
        start_(start),
        steps_(steps),
        moves_(moves),
        verdicts_(verdicts) {}

  // All ranks have let go: on as soon as every place has a worker.
  void AwaitPlaces(Job& job, absl::Time now, Actions& actions);
  // Takes those that are idle. The rest of these REQUIRE that the job is
  // between two attempts.
  void TakePlaces(Job& job, absl::Time now, Actions& actions);
  // Frees the workers of these ranks, with what they keep.
  void LetLeave(Job& job, const std::set<int>& ranks, Actions& actions);

  // All ranks have let go. Frees the workers whose machine failed, unless
  // others lack what they keep,
  void LeaveBadMachines(Job& job, Actions& actions);
  // and drops copies of attempts before this one, where this one has run.
  void DropOlderCopies(Job& job, Actions& actions) const;

  // --- What time does, and workers that come: of all jobs that wait ---

  // They take the workers that are idle.
  void RecoverWaiting(absl::Time now, Actions& actions);
  // Those that have waited long for workers other than those where their starts
  // failed try it there once more, where that gives them all that they need.
  void TryAgainWhereStartsFailed(absl::Time now, Actions& actions);
  // The job, queued or not, takes these workers again, on which its start
  // failed.
  void AvoidNoMore(Job& job, const FailedStarts& avoided, absl::Time now,
                   Actions& actions);
  // Those that keep bad machines, since a disk did not take what only these
  // have, try to save that once more where it is time.
  void SaveAgain(absl::Time now, Actions& actions);

 private:
  void AwaitPlacesNow(Job& job, absl::Time now, Actions& actions);
  void GoOnUnmoved(Job& job, absl::Time now, Actions& actions);
  // Why it does not go on, all the same; empty: it does.
  std::string WhyNotAgain(const Job& job) const;
  // What a job that waits for a place to be taken does without; or empty.
  std::string OrGoesOnWith(const Job& job, absl::Time now) const;
  // Nobody takes a place while these ranks, whose machines failed, keep what a
  // disk has not taken yet.
  void AwaitDisk(Job& job, const std::set<int>& ranks, Actions& actions);
  void TryAgainWhereItsStartFailed(Job& job, absl::Time now, Actions& actions);
  void StartAgain(Job& job, const std::vector<const Worker*>& workers,
                  absl::Time now, Actions& actions);

  const Limits limits_;
  WorkerTable& workers_;
  JobTable& jobs_;
  PhaseEffects& effects_;
  RunStart& start_;
  RunSteps& steps_;
  RunMoves& moves_;
  RunVerdicts& verdicts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_PLACES_H_
