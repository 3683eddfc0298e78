// The planner, as the cluster asks for it.
#ifndef TROUPE_SCHEDULER_SERVICE_PLAN_COMPILER_H_
#define TROUPE_SCHEDULER_SERVICE_PLAN_COMPILER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "scheduler/cluster/job_compiler.h"

namespace troupe {

class PlanCompiler final : public JobCompiler {
 public:
  absl::StatusOr<int> RanksNeeded(const JobSpec& job) const override;
  JobSpec Resolved(const JobSpec& job) const override;
  std::vector<JobSpec> Narrower(const JobSpec& job, int workers) const override;
  absl::StatusOr<CompiledJob> Compile(
      const JobSpec& job, const std::vector<WorkerDescription>& workers,
      const MayGoOn& may_go_on) const override;
  CompiledJob KeepWays(
      CompiledJob compiled, const Plan& before,
      const std::vector<WorkerDescription>& workers) const override;
  absl::StatusOr<Explanation> Explain(
      const JobSpec& job, const std::vector<WorkerDescription>& workers,
      const MayGoOn& may_go_on) const override;
  Plan PlanOfRank(const Plan& plan, int rank) const override;
  Plan PlanFor(const Plan& plan,
               const std::vector<WorkerDescription>& workers) const override;
  absl::StatusOr<TextPlan> PlanText(const JobSpec& job) const override;
  void ConnectText(const std::vector<WorkerDescription>& workers,
                   TextPlan& plan) const override;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_PLAN_COMPILER_H_
