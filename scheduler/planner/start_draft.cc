#include "scheduler/planner/start_draft.h"

#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/mesh.h"
#include "proto/plan/model.h"
#include "proto/plan/precision.h"
#include "scheduler/pipelines/pipelines.h"

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
                               .sequence_length = training.sequence_length(),
                               .dtype = ComputeType(training)}));
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

absl::Status OrderStages(Draft& draft) {
  ASSIGN_OR_RETURN(const Pipeline pipeline, FindPipeline("naive"));
  const PipelineShape shape = {
      .ranks = AxisSize(draft.plan.mesh(), "pipeline"),
      .micro_batches = draft.plan.derived().micro_batches()};
  ASSIGN_OR_RETURN(draft.compute_order, pipeline.order(shape));
  CHECK_EQ(shape.stages(), 1) << "the mesh has no pipeline axis";
  std::vector<int>& units = draft.stage_units.emplace_back();
  for (int u = 0; u < draft.plan.units_size(); ++u) units.push_back(u);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Draft> StartDraft(const JobSpec& resolved) {
  Draft draft;
  *draft.plan.mutable_job() = resolved;
  LayMesh(draft.plan);
  RETURN_IF_ERROR(AddUnits(draft.plan));
  PlaceUnits(draft.plan);
  Derive(draft.plan);
  RETURN_IF_ERROR(OrderStages(draft));
  return draft;
}

}  // namespace troupe
