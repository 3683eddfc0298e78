// Carries jobs from their start to their end: hears what the ranks report,
// stops all of them when one fails, and decides what follows when they have let
// go: whether the job goes on, in which way, or ends. A job fails at its first
// failure, and its other ranks are told to stop; it has ended when all its
// ranks have let go of it, or are lost. Messages of an earlier attempt, or of a
// worker that does not have the rank, are dropped.
//
// Each job of it is a part with an interface of its own:
//
//   start        begins attempts, and takes them back to the queue
//   ready        ranks are ready, and the job trains
//   steps        steps and commits become the job's; ranks are compared
//   shards       of checkpoints are gathered; those that could not be written
//   places       goes on in its places, when others have taken the vacant ones
//   moves        goes on elsewhere, with fewer ranks or more, or gives way
//   copies       that its workers keep become a checkpoint
//   cancel       jobs and workers that are asked to end
//   adopt        runs that outlive the scheduler
//   clock        deadlines
//   effects      messages and questions of the edge that a job has taken
//
// What they find they report here (run_verdicts.h), and so the edges by which a
// run is stopped, lets go and ends are taken here. All of them change a phase
// with JobTable::Enter, which takes the edge that Next of the table says
// (phase.h).
//
// What a rank reports is acknowledged once it is on the disk (Stored), and
// heard twice it counts once. Of a commit all hear at once, even where the disk
// is full; what it makes obsolete stays then.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_CONTROL_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_CONTROL_H_

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/late_watch.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/phase_effects.h"
#include "scheduler/cluster/run_adopt.h"
#include "scheduler/cluster/run_cancel.h"
#include "scheduler/cluster/run_clock.h"
#include "scheduler/cluster/run_copies.h"
#include "scheduler/cluster/run_moves.h"
#include "scheduler/cluster/run_places.h"
#include "scheduler/cluster/run_ready.h"
#include "scheduler/cluster/run_shards.h"
#include "scheduler/cluster/run_start.h"
#include "scheduler/cluster/run_steps.h"
#include "scheduler/cluster/run_verdicts.h"
#include "scheduler/cluster/stuck_worker.h"
#include "scheduler/cluster/worker_blame.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class RunControl final : private RunVerdicts {
 public:
  // Borrows all but the limits.
  RunControl(const Limits& limits, WorkerTable& workers, JobTable& jobs);
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;

  // What others ask of the parts.
  RunStart& start() { return start_; }
  RunPlaces& places() { return places_; }
  RunMoves& moves() { return moves_; }
  RunCopies& copies() { return copies_; }
  RunCancel& cancel() { return cancel_; }
  RunAdopt& adopt() { return adopt_; }
  const RunClock& clock() const { return clock_; }

  // One that has a RankRef.
  void HandleMessage(WorkerId from, const WorkerMessage& message,
                     absl::Time now, Actions& actions);
  // The worker is gone; `how` is "was lost" or "left". REQUIRES: it has a seat
  // in the job's run.
  void WorkerGone(JobId job, WorkerId worker, const std::string& how,
                  const std::string& reason, absl::Time now, Actions& actions);
  // The job fails with its `defect`. REQUIRES: it has a run and has not ended.
  void FailForDefect(Job& job, absl::Time now, Actions& actions);
  // Time in which no rank could be heard: no job's wait counts it.
  void Forgive(absl::Duration time, absl::Time now);
  // Fails jobs that do not start or hang; the workers that do not let go.
  std::vector<StuckWorker> Tick(absl::Time now, Actions& actions);

 private:
  void Fail(Job& job, Blame blame, const std::string& said, absl::Time now,
            Actions& actions) override;
  void Stop(Job& job, phase::Stopped stopped, const std::string& reason,
            absl::Time now, Actions& actions) override;
  void StopAgain(Job& job, const std::string& reason, bool peers_gone,
                 absl::Time now, Actions& actions) override;
  void FinishIfLetGo(Job& job, absl::Time now, Actions& actions) override;

  // The job whose run has this worker in this rank, or null.
  Job* Seated(WorkerId worker, const RankRef& ref);
  void Ended(Job& job, const RankEnded& ended, absl::Time now,
             Actions& actions);
  void SayEnded(Job& job, const RankEnded& ended, Actions& actions);
  // It goes on after this, if it may, or comes to its end.
  void SayStopped(Job& job, const std::string& reason, absl::Time now,
                  Actions& actions);
  // Of a job that was to be saved and has let go.
  void CheckSaved(Job& job, absl::Time now, Actions& actions);
  // It has let go, and moves when what there is of its state is saved.
  void MoveFromPlaces(Job& job, absl::Time now, Actions& actions);
  // It has let go, and is planned anew: on other workers than those where it
  // failed, or since what its ranks were handed is lost.
  void StartElsewhere(Job& job, absl::Time now, Actions& actions);
  void BeginAgain(Job& job, absl::Time now, Actions& actions);
  // It does not go on.
  void Finish(Job& job, absl::Time now, Actions& actions);

  const Limits limits_;
  WorkerTable& workers_;
  JobTable& jobs_;
  LateWatch late_;
  WorkerBlame blame_;
  PhaseEffects effects_;
  RunStart start_;
  RunReady ready_;
  RunSteps steps_;
  RunShards shards_;
  RunCopies copies_;
  RunMoves moves_;
  RunPlaces places_;
  RunCancel cancel_;
  RunAdopt adopt_;
  RunClock clock_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_CONTROL_H_
