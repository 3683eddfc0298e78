#include "scheduler/planner/planner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/check_program.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/planner/fit.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"
#include "scheduler/simulate/prediction.h"

namespace troupe {
namespace {

// All but the prediction, the comparison with budgets and the fingerprint.
absl::StatusOr<Plan> Build(const JobSpec& resolved) {
  ASSIGN_OR_RETURN(Draft draft, StartDraft(resolved));
  RunPasses(draft);
  RETURN_IF_ERROR(CheckPrograms(draft.plan));
  return std::move(draft.plan);
}

}  // namespace

absl::StatusOr<Plan> CompilePlan(
    const JobSpec& job, const std::vector<WorkerDescription>& workers) {
  ASSIGN_OR_RETURN(const JobSpec resolved, ResolveJob(job));
  const int ranks = RanksNeeded(resolved);
  if (static_cast<int>(workers.size()) < ranks) {
    return absl::FailedPreconditionError(absl::StrCat(
        "parallelism.data: ", ranks, " wants ", ranks, " workers, there are ",
        workers.size(), "; start more workers or use a smaller size"));
  }
  const std::vector<WorkerDescription> used(workers.begin(),
                                            workers.begin() + ranks);
  ASSIGN_OR_RETURN(Plan plan, Build(resolved));
  RETURN_IF_ERROR(CheckFit(plan, used, Build));
  ChooseBackends(used, plan);
  plan.set_fingerprint(PlanFingerprint(plan));
  *plan.mutable_prediction() = Predict(plan, used);
  return plan;
}

int RanksNeeded(const JobSpec& job) {
  return job.parallelism().has_data() ? std::max(1, job.parallelism().data())
                                      : 1;
}

Plan AssignmentPlan(const Plan& plan, int rank) {
  CHECK(rank >= 0 && rank < plan.ranks_size()) << "rank " << rank;
  Plan assignment;
  *assignment.mutable_job() = plan.job();
  *assignment.mutable_mesh() = plan.mesh();
  *assignment.mutable_groups() = plan.groups();
  *assignment.mutable_units() = plan.units();
  *assignment.mutable_placements() = plan.placements();
  *assignment.add_ranks() = plan.ranks(rank);
  *assignment.mutable_prediction() = plan.prediction();
  assignment.set_fingerprint(plan.fingerprint());
  *assignment.mutable_derived() = plan.derived();
  return assignment;
}

std::string PlanFingerprint(const Plan& plan) {
  Plan bare = plan;
  bare.clear_prediction();
  bare.clear_fingerprint();
  for (Group& group : *bare.mutable_groups()) group.clear_backend();
  // No message of a plan has a map, so equal plans serialise to equal bytes.
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits
  for (const char byte : bare.SerializeAsString()) {
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  return absl::StrFormat("%016x", hash);
}

}  // namespace troupe
