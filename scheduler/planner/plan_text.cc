#include "scheduler/planner/plan_text.h"

#include <algorithm>
#include <utility>

#include "proto/base/status.h"
#include "proto/plan/axes.h"
#include "proto/plan/fields.h"
#include "proto/plan/mesh.h"
#include "proto/plan/model.h"
#include "proto/plan/model_fields.h"
#include "proto/plan/text_parts.h"
#include "scheduler/layouts/cut_units.h"
#include "scheduler/planner/partition.h"

namespace troupe {
namespace {

// What of the job's parallelism a text has use for. Of one sequence, units are
// cut in one dimension.
ParallelismSpec CutOf(const ParallelismSpec& job) {
  ParallelismSpec cut;
  cut.set_tensor(std::max(job.tensor(), 1));
  cut.set_pipeline(std::max(job.pipeline(), 1));
  cut.set_virtual_stages(1);
  if (job.stages_size() == cut.pipeline()) *cut.mutable_stages() = job.stages();
  return cut;
}

absl::Status LayMesh(const ParallelismSpec& cut, TextPlan& plan) {
  for (Axis& axis : AxesOf(cut)) {
    *plan.mutable_mesh()->add_axes() = std::move(axis);
  }
  return CheckMesh(plan.mesh());
}

absl::StatusOr<UnitList> Units(const ModelSpec& model,
                               const ParallelismSpec& cut) {
  ASSIGN_OR_RETURN(UnitList units,
                   ModelUnits(model, {.sequences = 1,
                                      .sequence_length =
                                          LongestSequenceOf(model).positions}));
  const std::vector<AxisRules> axes = RulesFor(cut);
  RETURN_IF_ERROR(CheckCuts(units, axes));
  CutUnits(axes, units);
  return units;
}

absl::Status LayStages(const std::vector<Unit>& units,
                       const ParallelismSpec& cut, TextPlan& plan) {
  StageLayout layout;
  for (int p = 0; p < cut.pipeline(); ++p) layout.holders.push_back({p});
  ASSIGN_OR_RETURN(const auto stages, PartitionUnits(units, layout, cut));
  for (size_t p = 0; p < stages.size(); ++p) {
    Stage& stage = *plan.add_stages();
    stage.set_unit(stages[p].front());
    stage.set_unit_count(static_cast<int>(stages[p].size()));
    stage.add_pipeline_ranks(static_cast<int>(p));
  }
  return absl::OkStatus();
}

void LayGroups(TextPlan& plan) {
  Group all;
  all.set_name("all");
  for (const Axis& axis : plan.mesh().axes()) {
    if (axis.size() > 1) all.add_spans()->set_axis(axis.name());
  }
  if (all.spans().empty()) return;
  *plan.add_groups() = all;
  for (const Group::Span& span : all.spans()) {
    if (span.axis() == "pipeline") continue;
    Group& along = *plan.add_groups();
    along.set_name(span.axis());
    *along.add_spans() = span;
  }
}

}  // namespace

absl::StatusOr<TextPlan> PlanText(const JobSpec& job) {
  ModelSpec model = job.model();
  RETURN_IF_ERROR(ResolveModel(model));
  if (IsSynthetic(model)) {
    return FieldError("model.architecture", "a synthetic model has no text");
  }
  const ParallelismSpec cut = CutOf(job.parallelism());
  TextPlan plan;
  *plan.mutable_model() = model;
  RETURN_IF_ERROR(LayMesh(cut, plan));
  ASSIGN_OR_RETURN(UnitList units, Units(model, cut));
  RETURN_IF_ERROR(LayStages(units.units, cut, plan));
  LayGroups(plan);
  for (Unit& unit : units.units) *plan.add_units() = std::move(unit);
  for (UnitTable& table : units.tables) *plan.add_tables() = std::move(table);
  for (int rank = 0; rank < MeshSize(plan.mesh()); ++rank) {
    int64_t elements = 0;
    for (const int unit : UnitsOfText(plan, rank)) {
      elements += plan.units(unit).flat_elements();
    }
    plan.add_weight_bytes(elements * static_cast<int64_t>(sizeof(float)));
  }
  return plan;
}

}  // namespace troupe
