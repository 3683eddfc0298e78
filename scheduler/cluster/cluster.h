// The scheduler's core: members, queue and jobs as a state machine without
// sockets, threads or clocks. Each event is a method; it takes the time,
// changes the state and appends what is to be done (action.h), so that a whole
// cluster runs in a seeded simulation, and on the network alike.
//
// The queue is served in the order of submission (policy/queue_turn.h). When a
// job's turn comes it is compiled, beside the cluster (compilation.h), and
// starts when the outcome is there, unless its workers are no longer idle: then
// it is compiled for others.
//
// One caller at a time (host.h). Time never goes backwards.
#ifndef TROUPE_SCHEDULER_CLUSTER_CLUSTER_H_
#define TROUPE_SCHEDULER_CLUSTER_CLUSTER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/base/ids.h"
#include "proto/scheduler.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/compilation.h"
#include "scheduler/cluster/file_checks.h"
#include "scheduler/cluster/generations.h"
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/link_measurements.h"
#include "scheduler/cluster/policy/queue_turn.h"
#include "scheduler/cluster/policy/who_gives_way.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/wait_reason.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class Cluster {
 public:
  // Borrows the compiler. `new_run_id`: job_table.h.
  Cluster(const Limits& limits, const JobCompiler& compiler,
          NewId new_run_id = RandomId);

  // What tells this cluster from others: of the store, which has it for as long
  // as it lives. Before all workers; without it, of no cluster in particular.
  void RestoreId(std::string id) { id_ = std::move(id); }
  // What the store remembers of workers, and of links between their hosts.
  // Before Restore.
  void RestoreWorkers(std::vector<WorkerRecord> records) {
    workers_.RestoreRecords(std::move(records));
  }
  void RestoreHostLinks(std::vector<HostTopology> hosts, absl::Time now) {
    links_.Restore(std::move(hosts), now);
  }
  // Of hosts, of which nothing else is said (LinkMeasurements::Pairs).
  Topology MeasuredPairs() const { return links_.Pairs(); }
  // Before all other events: the jobs that the store remembers, by id. Those
  // that ran wait for their workers to come back (run_adopt.h).
  void Restore(std::vector<StoredJob> jobs, absl::Time now, Actions& actions);

  // --- What workers do ---

  // The first message of a session; answered by Registered among the actions.
  // A worker that holds a rank of this cluster is seated in it again, or told
  // to give it up. FAILED_PRECONDITION: it holds one of another cluster, of
  // which nothing is known here. Other errors as WorkerTable::Add.
  absl::StatusOr<WorkerId> RegisterWorker(const Register& request,
                                          absl::Time now, Actions& actions);
  // Any later message. Those of a worker that is gone are dropped.
  void HandleMessage(WorkerId from, const WorkerMessage& message,
                     absl::Time now, Actions& actions);
  // The session ended. Nothing happens if the worker is gone already.
  void Disconnected(WorkerId worker, const std::string& reason, absl::Time now,
                    Actions& actions);

  // --- What clients do; errors as in scheduler.proto ---

  // What to compile to answer PlanJob.
  absl::StatusOr<Compilation> PlanJob(const JobSpec& spec) const;

  // Submission has two halves, since what cannot fit is refused at once: what
  // to compile first (no choices: too few workers to tell), and then, unless
  // it was refused, the submission with the outcome.
  // `client` is the caller's name, for its share of the queue and for the
  // job's record; empty: nobody in particular.
  absl::StatusOr<Compilation> Consider(const JobSpec& spec,
                                       const std::string& client = "") const;
  absl::StatusOr<JobId> Submit(const JobSpec& asked,
                               const CompileOutcome& considered, absl::Time now,
                               Actions& actions,
                               const std::string& client = "");
  // Between the two: whether the job's files are there and fit, as workers see
  // them (file_checks.h). The number under which a FilesLookedAt action will
  // come; 0: nobody can be asked.
  int64_t CheckFiles(const JobSpec& job, absl::Time now, Actions& actions);
  absl::Status Cancel(JobId id, absl::Time now, Actions& actions,
                      const std::string& client = "");
  // The same, with a checkpoint first where the job runs.
  absl::Status SaveAndCancel(JobId id, absl::Time now, Actions& actions,
                             const std::string& client = "");
  // The worker's status, as it is then.
  absl::StatusOr<WorkerStatus> CordonWorker(const CordonWorkerRequest& request,
                                            absl::Time now, Actions& actions);
  // The number under which GenerateReply actions will come.
  absl::StatusOr<int64_t> Generate(const GenerateRequest& request,
                                   absl::Time now, Actions& actions);
  // The caller of Generate is gone.
  void AbandonText(int64_t text, absl::Time now, Actions& actions) {
    generations_.Abandon(text, now, actions);
    Settle(now, actions);
  }
  // The names of those who wrote it.
  absl::StatusOr<std::string> CancelText(int64_t text, absl::Time now,
                                         Actions& actions) {
    auto worker = generations_.Cancel(text, now, actions);
    Settle(now, actions);
    return worker;
  }

  // --- What the scheduler's end does ---

  // Jobs that run are saved and end, `why` in their reasons, or, where they may
  // move, are queued again; from here on none is started: those in the queue
  // are there for the next scheduler.
  void Drain(const std::string& why, absl::Time now, Actions& actions);

  // --- What planning does ---

  // The outcome of a CompileJob action.
  void Compiled(JobId id, const Compilation& compilation,
                const CompileOutcome& outcome, absl::Time now,
                Actions& actions);
  // Whether the job still waits for this outcome.
  bool Awaits(JobId id, const Compilation& asked) const;

  // --- What the store does ---

  // The answer to an AwaitStored action. A start that cannot be stored is no
  // fault of its job, which goes back to the queue; until the store can be
  // written again, none is started.
  void Stored(const AwaitStored& asked, const absl::Status& stored,
              absl::Time now, Actions& actions);

  // --- What time does: call it a few times a second ---

  // A tick that comes late says that the scheduler itself did not run (SIGSTOP,
  // a suspended machine): what others sent meanwhile waits to be heard, and no
  // lease and no deadline counts that time. Workers bear it as long as their
  // sessions do (worker/service/session.h).
  void Tick(absl::Time now, Actions& actions);

  // --- How often it schedules ---

  // Scheduling looks at every queued job and every worker. Where thousands of
  // workers come at once, after a restart, it must not follow each of them: as
  // long as this is set, events that change which workers there are leave it to
  // a later event, or to the next Tick. What clients ask for is done at once.
  void set_schedules_later(bool later) { schedules_later_ = later; }
  // How often it has scheduled, and whether some event has left it.
  int64_t schedules() const { return schedules_; }
  bool has_scheduling_left() const {
    return workers_.changes() != scheduled_at_;
  }

  // --- What is there ---

  // NOT_FOUND names the job.
  absl::StatusOr<const Job*> FindJob(JobId id) const;
  const JobTable& jobs() const { return jobs_; }
  const WorkerTable& workers() const { return workers_; }

 private:
  // An outcome that is at hand for a queued job.
  struct Offer {
    JobId job;
    const CompileOutcome* outcome = nullptr;
  };

  // That a rank which the worker holds, if any, is of this cluster.
  absl::Status CheckIsOurs(const Register& request) const;
  absl::Status CheckQueue(const std::string& client) const;
  // An event of the job that says who asked for its end.
  void NoteCancel(Job& job, const std::string& client, absl::Time now,
                  Actions& actions);
  // With the narrower ones, where it has any choices.
  Compilation CompilationForAll(const JobSpec& spec, int needed) const;
  // Fails defective jobs, starts what can start, has compiled what could, and
  // tells the others why they wait.
  void Schedule(absl::Time now, Actions& actions, const Offer& offer);
  void Schedule(absl::Time now, Actions& actions) {
    Schedule(now, actions, Offer());
  }
  // The end of every event: schedules where workers came, went, became busy or
  // idle in it. So no event needs to know which of its ends free workers. What
  // changes the queue schedules by itself.
  // And what changed of the workers' records is stored.
  void Settle(absl::Time now, Actions& actions) {
    for (WorkerRecord& record : workers_.TakeChangedRecords()) {
      actions.push_back(PersistWorker{std::move(record)});
    }
    bool due = !schedules_later_ && IsScheduleDue(now);
    while (due || jobs_.any_defective()) {
      Schedule(now, actions);
      due = false;
    }
    links_.Review(now, actions);
  }
  bool IsScheduleDue(absl::Time now) const {
    const bool calms = awaits_calm_ && IsCalm(now);
    return calms || now >= overtaken_at_ || has_scheduling_left();
  }
  // No worker has come or gone for a while.
  bool IsCalm(absl::Time now) const {
    return now - moved_at_ >= limits_.elastic_calm;
  }
  void Hear(Worker& from, const WorkerMessage& message, absl::Time now,
            Actions& actions);
  // False: it is for workers that are not idle, or for none.
  bool Start(Job& job, const CompileOutcome& outcome, absl::Time now,
             Actions& actions);
  // The idle workers, as they were then, will not do.
  void FindTooSmall(Job& job, int64_t changes, const std::string& why,
                    Actions& actions);
  // Whether its planning takes so long that those behind it may start first;
  // where it does not yet, notes when it will.
  bool IsOvertaken(const Job& job, absl::Time now);
  // Unless that is under way, or would say once more that it does not fit.
  void AskToCompile(Job& job, absl::Time now, Actions& actions);
  void AskToCompile(Job& job, Compilation asked, Actions& actions);
  // Jobs with which the scheduler did what its table of phases has no edge for.
  void FailDefective(absl::Time now, Actions& actions);
  // Of a queued job with `elastic`: whether it begins with fewer workers than
  // it has ranks.
  bool MayStartNarrow(const Job& job, absl::Time now);
  // The queued job that would be the next to start, if workers were free.
  absl::optional<NextInQueue> Next() const;
  // Whether that one, having waited long for workers other than those where its
  // start failed, is to be begun there again.
  bool TryNextWhereItsStartFailed(absl::Time now, Actions& actions);
  // Workers of one kind, GPU or CPU, whichever are more: those of a job are of
  // one kind.
  struct OneKind {
    int64_t changes = -1;  // WorkerTable::changes() when they were counted
    int alive = 0;
    int idle = 0;
  };
  const OneKind& OfOneKindAtMost() const;
  // There are too few workers for all of its ranks, and no plan for fewer does:
  // no end of another job helps it, and it holds none back.
  bool WaitsForOthersToCome(const Job& job) const;
  QueueTurn TurnFor(const Job& job, bool held_back, absl::Time now);
  // Of a job whose turn has not come; `first` holds it back, if some job does.
  std::string WhyItWaits(const Job& job, QueueTurn turn, const Job* first,
                         WaitReasons& reasons) const;
  // Where its start failed, as long as there are enough others.
  FailedStarts AvoidedBy(const Job& job) const;
  // The workers that may carry it out: without those.
  std::vector<const Worker*> IdleFor(const Job& job) const {
    return Without(workers_.Idle(), AvoidedBy(job));
  }
  int IdleCountFor(const Job& job) const;
  int InServiceCountFor(const Job& job) const;
  // No plan of a queued job does for those that were asked about: it waits for
  // others, and says why, or has failed.
  void Refuse(Job& job, const Compilation& compilation,
              const absl::Status& refusal, absl::Time now, Actions& actions);
  void StartAlsoWhereItFailed(Job& job, absl::Time now, Actions& actions);
  // Whether planning would be ended again.
  bool IsAskedInVain(const Job& job, const absl::Status& refusal) const;
  // How a job with `elastic` may run on so many workers: best first, by a plan
  // that is chosen again, if its user left that open.
  std::vector<JobSpec> ElasticWays(const Job& job, int workers) const;
  // Whether it runs with fewer, and goes on with more where there are some; or
  // is to have a plan that is chosen again where workers come.
  bool MayWiden(const Job& job) const;
  void AskToWiden(absl::Time now, Actions& actions);
  void Widen(Job& job, const Compilation& compilation,
             const CompileOutcome& outcome, absl::Time now, Actions& actions);
  // The store has not taken, or not in time, what the job waits for.
  void NotStored(Job& job, absl::Time now, Actions& actions);
  // Asks again, now and then, whether the store can be written.
  void AskTheStore(absl::Time now, Actions& actions);
  void ForgivePause(absl::Time now);
  void Lose(WorkerId worker, WorkerStatus::State state, const std::string& said,
            absl::Time now, Actions& actions);
  absl::StatusOr<std::string> CheckpointOf(
      const GenerateRequest& request) const;

  const Limits limits_;
  const JobCompiler& compiler_;
  std::string id_;
  int64_t last_compilation_ = 0;
  int64_t scheduled_at_ = 0;  // WorkerTable::changes() after the last Schedule
  int64_t schedules_ = 0;
  bool schedules_later_ = false;
  absl::Time moved_at_ = absl::InfinitePast();  // a worker came or went
  // A queued job begins with those that there are once none has for a while.
  bool awaits_calm_ = false;
  // When the first job of the queue holds nobody back any more.
  absl::Time overtaken_at_ = absl::InfiniteFuture();
  bool queue_waits_ = false;  // some job is to start before all others
  bool draining_ = false;
  absl::Status store_;            // not OK: it cannot be written, and why
  absl::Time store_asked_;        // not OK: when it was asked the last time
  bool store_will_tell_ = false;  // that was not answered yet
  absl::Time last_tick_ = absl::InfiniteFuture();  // before the first one
  WorkerTable workers_;
  JobTable jobs_;
  RunControl runs_;
  Generations generations_;
  LinkMeasurements links_;
  FileChecks file_checks_;
  mutable OneKind one_kind_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_CLUSTER_H_
