// The scheduler's core: members, queue and jobs as a state machine without
// sockets, threads or clocks. Each event is a method; it takes the time,
// changes the state and appends what is to be done (action.h), so that a whole
// cluster runs in a seeded simulation, and on the network alike.
//
// The queue is served in the order of submission. The first job that the
// registered workers could carry, but not the idle ones, holds those behind it
// back, so that it is not starved; a job that needs more workers than are
// registered holds nobody back.
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
#include "scheduler/cluster/generations.h"
#include "scheduler/cluster/job_compiler.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class Cluster {
 public:
  // Borrows the compiler.
  Cluster(const Limits& limits, const JobCompiler& compiler);

  // Before all other events: the jobs that the store remembers, by id.
  void Restore(std::vector<StoredJob> jobs, absl::Time now, Actions& actions);

  // --- What workers do ---

  // The first message of a session; answered by Registered among the actions.
  // Errors as WorkerTable::Add.
  absl::StatusOr<WorkerId> RegisterWorker(const Register& request,
                                          absl::Time now, Actions& actions);
  // Any later message. Those of a worker that is gone are dropped.
  void HandleMessage(WorkerId from, const WorkerMessage& message,
                     absl::Time now, Actions& actions);
  // The session ended. Nothing happens if the worker is gone already.
  void Disconnected(WorkerId worker, const std::string& reason, absl::Time now,
                    Actions& actions);

  // --- What clients do; errors as in scheduler.proto ---

  absl::StatusOr<JobId> Submit(const JobSpec& spec, absl::Time now,
                               Actions& actions);
  absl::StatusOr<CompiledJob> PlanJob(const JobSpec& spec) const;
  absl::Status Cancel(JobId id, absl::Time now, Actions& actions);
  // The number under which GenerateReply actions will come.
  absl::StatusOr<int64_t> Generate(const GenerateRequest& request,
                                   absl::Time now, Actions& actions);
  void AbandonGenerate(int64_t request) { generations_.Abandon(request); }

  // --- What time does: call it a few times a second ---

  void Tick(absl::Time now, Actions& actions);

  // --- What is there ---

  // NOT_FOUND names the job.
  absl::StatusOr<const Job*> FindJob(JobId id) const;
  const JobTable& jobs() const { return jobs_; }
  const WorkerTable& workers() const { return workers_; }

 private:
  // A compiled job and who is to carry it out.
  struct Fitting {
    std::vector<const Worker*> workers;
    CompiledJob compiled;
  };
  // On the candidates that placement prefers or, where it does not fit them, on
  // those with the most memory. REQUIRES: enough candidates.
  absl::StatusOr<Fitting> Fit(
      const JobSpec& spec, int needed,
      const std::vector<const Worker*>& candidates) const;

  // Starts what can start; tells the others why they wait.
  void Schedule(absl::Time now, Actions& actions);
  // False: it waits for busy workers that have more memory.
  bool StartOrFail(Job& job, absl::Time now, Actions& actions);
  void Lose(WorkerId worker, WorkerStatus::State state,
            const std::string& reason, absl::Time now, Actions& actions);
  absl::StatusOr<std::string> CheckpointOf(
      const GenerateRequest& request) const;

  const Limits limits_;
  const JobCompiler& compiler_;
  WorkerTable workers_;
  JobTable jobs_;
  RunControl runs_;
  Generations generations_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_CLUSTER_H_
