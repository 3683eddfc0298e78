// The scheduler's core: members, queue and jobs as a state machine without
// sockets, threads or clocks. Each event is a method; it takes the time,
// changes the state and appends what is to be done (action.h), so that a whole
// cluster runs in a seeded simulation, and on the network alike.
//
// Its parts: the workers (worker_table.h), the jobs (job_table.h), which of
// them starts next (job_queue.h), what becomes of those that run
// (run_control.h), texts (generations.h), links (link_measurements.h), and
// questions about files (file_checks.h).
//
// One caller at a time (host.h). Time never goes backwards.
#ifndef TROUPE_SCHEDULER_CLUSTER_CLUSTER_H_
#define TROUPE_SCHEDULER_CLUSTER_CLUSTER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/ids.h"
#include "proto/scheduler.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/compilation.h"
#include "scheduler/cluster/file_checks.h"
#include "scheduler/cluster/generations.h"
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/job_queue.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/link_measurements.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/store_watch.h"
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
  // `client` is the caller's name, for its share of the queue; empty: nobody in
  // particular.
  absl::StatusOr<Compilation> Consider(const JobSpec& spec,
                                       const std::string& client = "") const;
  absl::StatusOr<JobId> Submit(const JobSpec& asked,
                               const CompileOutcome& considered, absl::Time now,
                               Actions& actions, const Submitter& by = {});
  // Before them: whether it could be stored that a job is there.
  absl::Status CheckStore() const { return store_.status(); }
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
  // The names of those that wrote it.
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
  bool Awaits(JobId id, const Compilation& asked) const {
    return queue_.Awaits(id, asked);
  }

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
  int64_t schedules() const { return queue_.schedules(); }
  bool has_scheduling_left() const { return queue_.has_left(); }

  // --- What is there ---

  // NOT_FOUND names the job.
  absl::StatusOr<const Job*> FindJob(JobId id) const;
  const JobTable& jobs() const { return jobs_; }
  const WorkerTable& workers() const { return workers_; }

 private:
  // That a rank which the worker holds, if any, is of this cluster.
  absl::Status CheckIsOurs(const Register& request) const;
  absl::Status CheckQueue(const std::string& client) const;
  // An event of the job that says which client asked for its end.
  void NoteCancel(Job& job, const std::string& client, absl::Time now,
                  Actions& actions);
  // With the narrower ones, where it has any choices.
  Compilation CompilationForAll(const JobSpec& spec, int needed) const;
  // The end of every event: schedules where workers came, went, became busy or
  // idle in it. So no event needs to know which of its ends free workers. What
  // changes the queue schedules by itself.
  // And what changed of the workers' records is stored.
  void Settle(absl::Time now, Actions& actions);
  void Hear(Worker& from, const WorkerMessage& message, absl::Time now,
            Actions& actions);
  // The store has not taken, or not in time, what the job waits for.
  void NotStored(Job& job, absl::Time now, Actions& actions);
  void ForgivePause(absl::Time now);
  // Those that have not been heard for too long, and those that are stuck.
  void LoseSilent(absl::Time now, Actions& actions);
  void Lose(WorkerId worker, WorkerStatus::State state, const std::string& said,
            absl::Time now, Actions& actions);
  absl::StatusOr<std::string> CheckpointOf(
      const GenerateRequest& request) const;

  const Limits limits_;
  const JobCompiler& compiler_;
  std::string id_;
  bool schedules_later_ = false;
  absl::Time last_tick_ = absl::InfiniteFuture();  // before the first one
  StoreWatch store_;
  WorkerTable workers_;
  JobTable jobs_;
  RunControl runs_;
  JobQueue queue_;
  Generations generations_;
  LinkMeasurements links_;
  FileChecks file_checks_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_CLUSTER_H_
