// Starts jobs: serves the queue in the order of submission
// (policy/queue_turn.h). A job whose turn has come is compiled, beside the
// cluster (compilation.h), and starts when the outcome is there, unless its
// workers are no longer idle: then it is compiled for others. A job that waits
// says what for.
//
// What a queued job waits for, and what was asked for it, lies in the data of
// its phase (phase_data.h).
#ifndef TROUPE_SCHEDULER_CLUSTER_JOB_QUEUE_H_
#define TROUPE_SCHEDULER_CLUSTER_JOB_QUEUE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/base/ids.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/compilation.h"
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/policy/queue_turn.h"
#include "scheduler/cluster/policy/who_gives_way.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/store_watch.h"
#include "scheduler/cluster/wait_reason.h"
#include "scheduler/cluster/worker_preference.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class JobQueue {
 public:
  // Borrows all but the limits.
  JobQueue(const Limits& limits, const JobCompiler& compiler,
           const StoreWatch& store, WorkerTable& workers, JobTable& jobs,
           RunControl& runs)
      : limits_(limits),
        compiler_(compiler),
        store_(store),
        workers_(workers),
        jobs_(jobs),
        runs_(runs) {}

  // An outcome that is at hand for a queued job.
  struct Offer {
    JobId job;
    const CompileOutcome* outcome = nullptr;
  };
  // Fails defective jobs, starts what can start, has compiled what could, and
  // tells the others why they wait.
  void Schedule(absl::Time now, Actions& actions, const Offer& offer);
  void Schedule(absl::Time now, Actions& actions) {
    Schedule(now, actions, Offer());
  }

  // The outcome of a CompileJob action. True: of a job that runs, which is
  // perhaps being saved for it.
  bool Compiled(JobId id, const Compilation& compilation,
                const CompileOutcome& outcome, absl::Time now,
                Actions& actions);
  // Whether the job still waits for this outcome.
  bool Awaits(JobId id, const Compilation& asked) const;

  // The queued job that would be the next to start, if workers were free.
  absl::optional<NextInQueue> Next() const;
  // Whether that one, having waited long for workers other than those where its
  // start failed, is to be begun there again.
  bool TryNextWhereItsStartFailed(absl::Time now, Actions& actions);
  // Jobs that run with fewer workers than they have ranks are planned for more,
  // where some are idle and no other job waits for them.
  void AskToWiden(absl::Time now, Actions& actions);
  // Jobs with which the scheduler did what its table of phases has no edge for.
  void FailDefective(absl::Time now, Actions& actions);

  // From here on none is started.
  void Drain() { draining_ = true; }
  bool draining() const { return draining_; }

  // A worker has come or gone.
  void WorkersMoved(absl::Time now) { moved_at_ = now; }
  // For how long none has.
  absl::Duration CalmFor(absl::Time now) const { return now - moved_at_; }
  bool IsCalm(absl::Time now) const {
    return CalmFor(now) >= limits_.elastic_calm;
  }

  // Whether there is something to schedule, by events or by time.
  bool IsDue(absl::Time now) const {
    return (awaits_calm_ && IsCalm(now)) || now >= overtaken_at_ || has_left();
  }
  // Whether workers have changed since it scheduled.
  bool has_left() const { return workers_.changes() != scheduled_at_; }
  int64_t schedules() const { return schedules_; }  // how often it has

 private:
  // --- The turn of each job ---

  QueueTurn TurnFor(const Job& job, bool held_back, absl::Time now);
  // Of a job whose turn has not come; `first` holds it back, if some job does.
  std::string WhyItWaits(const Job& job, QueueTurn turn, const Job* first,
                         WaitReasons& reasons) const;
  // Of a queued job with `elastic`: whether it begins with fewer workers than
  // it has ranks.
  bool MayStartNarrow(const Job& job, absl::Time now);
  // Whether its planning takes so long that those behind it may start first;
  // where it does not yet, notes when it will.
  bool IsOvertaken(const Job& job, absl::Time now);
  // There are too few workers for all of its ranks, and no plan for fewer does:
  // no end of another job helps it, and it holds none back.
  bool WaitsForOthersToCome(const Job& job) const;

  // --- Its plan ---

  // Unless that is under way, or would say once more that it does not fit.
  void AskToCompile(Job& job, absl::Time now, Actions& actions);
  // The action for it, with the number under which the outcome comes.
  int64_t SendToCompile(const Job& job, Compilation asked, Actions& actions);
  // False: it is for workers that are not idle, or for none.
  bool Start(Job& job, const CompileOutcome& outcome, absl::Time now,
             Actions& actions);
  // No plan of a queued job does for those that were asked about: it waits for
  // others, and says why, or has failed.
  void Refuse(Job& job, const Compilation& compilation,
              const absl::Status& refusal, absl::Time now, Actions& actions);
  // The idle workers, as they were then, will not do.
  void FindTooSmall(Job& job, int64_t changes, const std::string& why,
                    Actions& actions);
  void StartAlsoWhereItFailed(Job& job, absl::Time now, Actions& actions);
  // Whether planning would be ended again.
  bool IsAskedInVain(const Job& job, const absl::Status& refusal) const;
  // Whether it runs with fewer, and goes on with more where there are some.
  bool MayWiden(const Job& job) const;
  // How a job with `elastic` may run on `workers` workers: best first, by a
  // plan that is chosen again, if its user left that open.
  std::vector<JobSpec> ElasticWays(const Job& job, int workers) const;
  void Widen(Job& job, const Compilation& compilation,
             const CompileOutcome& outcome, absl::Time now, Actions& actions);

  // --- Its workers ---

  // Workers of one kind, GPU or CPU, whichever are more: those of a job are of
  // one kind.
  struct OneKind {
    int64_t changes = -1;  // WorkerTable::changes() when they were counted
    int alive = 0;
    int idle = 0;
  };
  const OneKind& OfOneKindAtMost() const;
  // Where its start failed, as long as there are enough others.
  FailedStarts AvoidedBy(const Job& job) const;
  // The workers that may carry it out: without those.
  std::vector<const Worker*> IdleFor(const Job& job) const {
    return Without(workers_.Idle(), AvoidedBy(job));
  }
  int IdleCountFor(const Job& job) const;
  int InServiceCountFor(const Job& job) const;

  const Limits limits_;
  const JobCompiler& compiler_;
  const StoreWatch& store_;
  WorkerTable& workers_;
  JobTable& jobs_;
  RunControl& runs_;
  int64_t last_compilation_ = 0;
  int64_t scheduled_at_ = 0;  // WorkerTable::changes() after the last Schedule
  int64_t schedules_ = 0;
  absl::Time moved_at_ = absl::InfinitePast();  // a worker came or went
  // A queued job begins with those that there are once none has for a while.
  bool awaits_calm_ = false;
  // When the first job of the queue holds nobody back any more.
  absl::Time overtaken_at_ = absl::InfiniteFuture();
  bool queue_waits_ = false;  // some job is to start before all others
  bool draining_ = false;
  mutable OneKind one_kind_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_JOB_QUEUE_H_
