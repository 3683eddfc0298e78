#include "scheduler/planner/planner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/check_program.h"
#include "proto/plan/mesh.h"
#include "proto/plan/model.h"
#include "scheduler/passes/passes.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/fit.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/simulate/prediction.h"

namespace troupe {
namespace {

void LayMesh(Plan& plan) {
  Axis& data = *plan.mutable_mesh()->add_axes();
  data.set_name("data");
  data.set_size(plan.job().parallelism().data());
  CHECK_OK(CheckMesh(plan.mesh()));
  for (Group& group :
       GroupsAlong(plan.mesh(), "data", "sum gradients over data replicas")) {
    *plan.add_groups() = std::move(group);
  }
  for (int r = 0; r < MeshSize(plan.mesh()); ++r) plan.add_ranks()->set_rank(r);
}

absl::Status AddUnits(Plan& plan) {
  const TrainingSpec& training = plan.job().training();
  ASSIGN_OR_RETURN(std::vector<Unit> units,
                   ModelUnits(plan.job().model(),
                              {.sequences = training.micro_batch_size(),
                               .sequence_length = training.sequence_length()}));
  Derived& derived = *plan.mutable_derived();
  derived.set_parameters(ParameterCount(units));
  for (Unit& unit : units) *plan.add_units() = std::move(unit);
  return absl::OkStatus();
}

// Every rank holds every unit: data parallelism.
void PlaceUnits(Plan& plan) {
  for (int g = 0; g < plan.groups_size(); ++g) {
    for (const int rank : plan.groups(g).ranks()) {
      for (int u = 0; u < plan.units_size(); ++u) {
        Placement& placement = *plan.add_placements();
        placement.set_unit(u);
        placement.set_rank(rank);
        placement.set_replica_group(g);
      }
    }
  }
}

void Derive(Plan& plan) {
  const TrainingSpec& training = plan.job().training();
  const int replica_sequences =
      plan.job().parallelism().data() * training.micro_batch_size();
  Derived& derived = *plan.mutable_derived();
  derived.set_data_parallel_size(plan.job().parallelism().data());
  derived.set_micro_batches(training.global_batch_size() / replica_sequences);
  derived.set_tokens_per_step(int64_t{training.global_batch_size()} *
                              training.sequence_length());
  derived.set_model_flops_per_token(
      ModelFlopsPerToken(plan.job().model(), training.sequence_length()));
  if (training.validate_every() > 0) {
    derived.set_validation_micro_batches(
        (training.validation_sequences() + replica_sequences - 1) /
        replica_sequences);
  }
}

// All but the prediction, the comparison with budgets and the fingerprint.
absl::StatusOr<Plan> Build(const JobSpec& resolved) {
  Draft draft;
  *draft.plan.mutable_job() = resolved;
  LayMesh(draft.plan);
  RETURN_IF_ERROR(AddUnits(draft.plan));
  PlaceUnits(draft.plan);
  Derive(draft.plan);

  ASSIGN_OR_RETURN(const Pipeline pipeline, FindPipeline("naive"));
  const PipelineShape shape = {
      .ranks = AxisSize(draft.plan.mesh(), "pipeline"),
      .micro_batches = draft.plan.derived().micro_batches()};
  ASSIGN_OR_RETURN(draft.compute_order, pipeline.order(shape));
  CHECK_EQ(shape.stages(), 1);
  draft.stage_units.emplace_back();
  for (int u = 0; u < draft.plan.units_size(); ++u) {
    draft.stage_units.back().push_back(u);
  }
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
  // No message of a plan has a map, so equal plans serialise to equal bytes.
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits
  for (const char byte : bare.SerializeAsString()) {
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  }
  return absl::StrFormat("%016x", hash);
}

}  // namespace troupe
