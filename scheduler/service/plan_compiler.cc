#include "scheduler/service/plan_compiler.h"

#include <memory>
#include <utility>

#include "proto/base/must_not_wait.h"
#include "proto/base/status.h"
#include "proto/plan/ranks_needed.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/planner/explain.h"
#include "scheduler/planner/narrower.h"
#include "scheduler/planner/plan_text.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/search/explain_choice.h"
#include "scheduler/search/plan_job.h"
#include "scheduler/search/space.h"

namespace troupe {

absl::StatusOr<int> PlanCompiler::RanksNeeded(const JobSpec& job) const {
  if (LeavesParallelismOpen(job)) {
    RETURN_IF_ERROR(CheckOpenJob(job));
    return RanksAtLeast(job);
  }
  ASSIGN_OR_RETURN(const JobSpec resolved, ResolveJob(job));
  return troupe::RanksNeeded(resolved);
}

JobSpec PlanCompiler::Resolved(const JobSpec& job) const {
  if (LeavesParallelismOpen(job)) return job;
  return ResolveJob(job).value_or(job);
}

std::vector<JobSpec> PlanCompiler::Narrower(const JobSpec& job,
                                            int workers) const {
  return NarrowerWays(job, workers);
}

absl::StatusOr<CompiledJob> PlanCompiler::Compile(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on) const {
  ASSIGN_OR_RETURN(PlannedJob result, PlanJob(job, workers, may_go_on));
  CompiledJob compiled = MakeCompiledJob(std::move(result.planned.plan),
                                         std::move(result.planned.step));
  compiled.chosen = std::move(result.job);
  compiled.explanation = std::move(result.explanation);
  return compiled;
}

CompiledJob PlanCompiler::KeepWays(
    CompiledJob compiled, const Plan& before,
    const std::vector<WorkerDescription>& workers) const {
  absl::optional<PlanAndStep> kept =
      WithWaysOf(before, workers, *compiled.plan);
  if (!kept.has_value()) return compiled;
  CompiledJob made =
      MakeCompiledJob(std::move(kept->plan), std::move(kept->step));
  made.chosen = std::move(compiled.chosen);
  made.explanation = std::move(compiled.explanation);
  return made;
}

absl::StatusOr<Explanation> PlanCompiler::Explain(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on) const {
  if (LeavesParallelismOpen(job)) {
    return ExplainChoice(job, workers, may_go_on);
  }
  return troupe::Explain(job, workers, may_go_on);
}

Plan PlanCompiler::PlanFor(
    const Plan& plan, const std::vector<WorkerDescription>& workers) const {
  CheckMayWait("a plan is connected for other machines");
  Plan moved = plan;
  for (Group& group : *moved.mutable_groups()) group.clear_carriers();
  ChooseBackends(workers, moved.mesh(), *moved.mutable_groups());
  return moved;
}

Plan PlanCompiler::PlanOfRank(const Plan& plan, int rank) const {
  return AssignmentPlan(plan, rank);
}

absl::StatusOr<TextPlan> PlanCompiler::PlanText(const JobSpec& job) const {
  return troupe::PlanText(job);
}

void PlanCompiler::ConnectText(const std::vector<WorkerDescription>& workers,
                               TextPlan& plan) const {
  ChooseBackends(workers, plan.mesh(), *plan.mutable_groups());
}

}  // namespace troupe
