// The seam between the cluster and the planner: all that the cluster asks of
// planning. The daemon gives it the planner (service/plan_compiler.h); tests
// give it one that knows what they need.
#ifndef TROUPE_SCHEDULER_CLUSTER_JOB_COMPILER_H_
#define TROUPE_SCHEDULER_CLUSTER_JOB_COMPILER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/may_go_on.h"
#include "proto/cluster.pb.h"
#include "proto/explanation.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/text_plan.pb.h"
#include "proto/timeline.pb.h"

namespace troupe {

struct CompiledJob {
  std::shared_ptr<const Plan> plan;     // with the programs of all roles
  std::shared_ptr<const Plan> outline;  // the same without `roles`
  std::vector<bool> loads_data;         // by rank: it has instructions that do
  Timeline predicted;
  // Of a job that left parallelism open: the job as its user wrote it, with
  // what was chosen, and how it was chosen.
  JobSpec chosen;
  Explanation explanation;
};

// Makes what follows from the plan. Takes as long as the plan is large: not for
// the cluster's own events.
CompiledJob MakeCompiledJob(Plan plan, Timeline predicted);

// Thread-safe: holds no state that changes.
class JobCompiler {
 public:
  virtual ~JobCompiler() = default;

  // How many workers the job runs on; where it leaves that open
  // (LeavesParallelismOpen), at least. INVALID_ARGUMENT, beginning with the path of
  // the field: the job is wrong whatever it runs on.
  virtual absl::StatusOr<int> RanksNeeded(const JobSpec& job) const = 0;

  // The job with its defaults filled in, as far as that takes no workers; as it
  // is where it leaves ranks open or RanksNeeded refuses it.
  virtual JobSpec Resolved(const JobSpec& job) const { return job; }

  // How a job with `elastic` may run on fewer ranks than it needs, `workers` at
  // most; best first. REQUIRES that RanksNeeded takes it.
  virtual std::vector<JobSpec> Narrower(const JobSpec& job,
                                        int workers) const = 0;

  // workers[r] is to carry out rank r; where the job leaves ranks open, as many
  // as there are or the first of them. INVALID_ARGUMENT: wrong, or it does not
  // fit, with the line item and what would make it fit; whether others would do
  // says IsForWorkers (proto/plan/worker_refusal.h). And what `may_go_on` says.
  virtual absl::StatusOr<CompiledJob> Compile(
      const JobSpec& job, const std::vector<WorkerDescription>& workers,
      const MayGoOn& may_go_on) const = 0;

  // Compile's for these workers, of a job that goes on after `before`, its last
  // plan: where the mesh is the same, sums are taken as they were there, if
  // these workers can.
  virtual CompiledJob KeepWays(
      CompiledJob compiled, const Plan& before,
      const std::vector<WorkerDescription>& workers) const {
    return compiled;
  }

  // Which ways of sharing its ranks the job has on these workers, compared. As
  // Compile, but that a job which does not fit is part of the answer.
  virtual absl::StatusOr<Explanation> Explain(
      const JobSpec& job, const std::vector<WorkerDescription>& workers,
      const MayGoOn& may_go_on) const = 0;

  // What is sent to the worker of this rank: the plan as far as it concerns it.
  virtual Plan PlanOfRank(const Plan& plan, int rank) const = 0;

  // The plan for other workers than it was made for, workers[r] as rank r: the
  // same, but for what carries its groups between them. As slow as a plan is
  // large (moved_plan.h).
  virtual Plan PlanFor(const Plan& plan,
                       const std::vector<WorkerDescription>& workers) const = 0;

  // What workers do that write a text with the job's model, cut as its
  // parallelism says over tensor x pipeline of them. Quick. INVALID_ARGUMENT.
  virtual absl::StatusOr<TextPlan> PlanText(const JobSpec& job) const = 0;
  // Completes it for those that will: workers[r] as rank r.
  virtual void ConnectText(const std::vector<WorkerDescription>& workers,
                           TextPlan& plan) const = 0;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_JOB_COMPILER_H_
