#include "scheduler/planner/start_draft.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/expert_load.h"
#include "proto/plan/fields.h"
#include "proto/plan/groups.h"
#include "proto/plan/islands.h"
#include "proto/plan/mesh.h"
#include "proto/plan/model.h"
#include "proto/plan/precision.h"
#include "proto/plan/replica_share.h"
#include "proto/plan/roles.h"
#include "proto/plan/sequence_losses.h"
#include "proto/plan/sharing.h"
#include "proto/plan/strategies.h"
#include "scheduler/layouts/axes.h"
#include "scheduler/layouts/freeze.h"
#include "scheduler/layouts/lay_matrices.h"
#include "scheduler/layouts/lay_parts.h"
#include "scheduler/layouts/lora.h"
#include "scheduler/layouts/optimizer_groups.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/layouts/unit_rules.h"
#include "scheduler/passes/lanes.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/check_graph.h"
#include "scheduler/planner/lay_decoding.h"
#include "scheduler/planner/lay_groups.h"
#include "scheduler/planner/part_states.h"
#include "scheduler/planner/partition.h"
#include "scheduler/planner/resolve_sample.h"
#include "scheduler/planner/unit_kinds.h"
#include "scheduler/tiers/loss_chunks.h"
#include "scheduler/tiers/recompute.h"

namespace troupe {
namespace {

void LayMesh(Plan& plan) {
  for (Axis& axis : AxesOf(plan.job().parallelism())) {
    *plan.mutable_mesh()->add_axes() = std::move(axis);
  }
  CHECK_OK(CheckMesh(plan.mesh()));
}

// Of the model, on one rank each; and what follows from them alone.
absl::StatusOr<UnitList> WholeUnits(Plan& plan) {
  const TrainingSpec& training = plan.job().training();
  ASSIGN_OR_RETURN(
      UnitList list,
      ModelUnits(plan.job().model(),
                 {.sequences = MicroBatchSequences(plan.job()),
                  .sequence_length = training.sequence_length(),
                  .dtype = ComputeType(training),
                  .dropout = training.dropout(),
                  .isolates_documents = plan.job().data().isolate_documents(),
                  .step_sequences = StepSequences(plan.job()),
                  .lora = training.has_lora() ? &training.lora() : nullptr}));
  RETURN_IF_ERROR(CheckGraph(plan.job(), list));
  RETURN_IF_ERROR(CheckLora(training, list));
  Derived& derived = *plan.mutable_derived();
  derived.set_parameters(ParameterCount(list.units));
  const int64_t active = ActiveParameterCount(list);
  if (active < derived.parameters()) derived.set_active_parameters(active);
  if (plan.job().evaluate()) {
    FreezeAll(list);
  } else {
    RETURN_IF_ERROR(MarkFrozen(training, list));
  }
  RETURN_IF_ERROR(MarkGroups(plan.job().optimizer(), list));
  RETURN_IF_ERROR(CheckSample(plan.job()));
  derived.set_frozen_parameters(FrozenCount(list));
  derived.set_model_flops_per_token(
      ModelFlopsPerToken(plan.job().model(), training.sequence_length()) *
      TrainedWorkShare(list));
  return list;
}

absl::Status CheckIsModel(const JobSpec& job) {
  if (!IsSynthetic(job.model())) return absl::OkStatus();
  const std::vector<AxisRules> axes = RulesFor(job.parallelism());
  if (axes.empty()) return absl::OkStatus();
  const SizeField& field = axes.front().field;
  return FieldError(field.part_of.empty() ? field.name : field.part_of,
                    "synthetic units compute nothing that could be cut; "
                    "leave it out");
}

// REQUIRES its compute order.
absl::Status AddUnits(const UnitRules& rules, UnitList list, Draft& draft) {
  Plan& plan = draft.plan;
  RETURN_IF_ERROR(CheckCuts(rules, list));
  RETURN_IF_ERROR(CutUnits(rules, list));
  LayParts(plan.job().optimizer(), list);
  SetPartStates(plan, list);
  for (const Unit& unit : list.units) {
    RETURN_IF_ERROR(CheckMatrices(plan.job().optimizer(), unit));
  }
  LayFrozen(list);
  RETURN_IF_ERROR(
      ChunkLoss(plan.job().memory().loss_chunk_tokens(), list));
  const RecomputedUnits recomputed = {
      .count = static_cast<int>(list.units.size()),
      .last_turns_at_once = LastStageTurnsAtOnce(draft.compute_order)};
  MarkAgain(KeptBy(plan.job().memory().recompute(), recomputed), list);
  plan.clear_units();
  plan.clear_tables();
  for (Unit& unit : list.units) *plan.add_units() = std::move(unit);
  for (UnitTable& table : list.tables) *plan.add_tables() = std::move(table);
  *plan.mutable_batch() = std::move(list.batch);
  return ExpectMeasuredLoad(plan);
}

int64_t RoundedUp(int64_t number, int64_t divisor) {
  return (number + divisor - 1) / divisor;
}

// As many for each of the replicas that compute a step together, where none are
// given.
std::vector<int> MicroBatchesOfReplicas(const ParallelismSpec& parallelism,
                                        int64_t of_step, int at_once) {
  const auto& given = parallelism.micro_batches();
  if (!given.empty()) return {given.begin(), given.end()};
  const int replicas = ReplicasOf(parallelism);
  return std::vector<int>(replicas, static_cast<int>(of_step / at_once));
}

// In proportion to those of training where replicas differ, as fast ones are
// fast in both. Servers run none.
void DeriveMicroBatches(const JobSpec& job, Derived& derived) {
  const TrainingSpec& training = job.training();
  const ParallelismSpec& parallelism = job.parallelism();
  const int64_t sequences = MicroBatchSequences(job);
  const int64_t of_step = training.global_batch_size() / sequences;
  const int64_t of_validation =
      training.validate_every() == 0
          ? 0
          : RoundedUp(training.validation_sequences(), sequences);
  const auto& given = parallelism.micro_batches();
  const bool equal = std::adjacent_find(given.begin(), given.end(),
                                        std::not_equal_to<>()) == given.end();
  if (equal && parallelism.servers() == 0) {
    const int replicas = IslandsOf(parallelism) * ReplicasOf(parallelism);
    derived.set_micro_batches(of_step / replicas);
    derived.set_validation_micro_batches(RoundedUp(of_validation, replicas));
    return;
  }
  int most = 0;
  int most_validation = 0;
  const int at_once = ReplicasOfStep(job);
  const int64_t of_replicas = of_step * ReplicasOf(parallelism) / at_once;
  for (const int count :
       MicroBatchesOfReplicas(parallelism, of_step, at_once)) {
    const int validation = RoundedUp(of_validation * count, of_replicas);
    derived.add_replica_micro_batches(count);
    if (of_validation > 0) {
      derived.add_replica_validation_micro_batches(validation);
    }
    most = std::max(most, count);
    most_validation = std::max(most_validation, validation);
  }
  for (int server = 0; server < parallelism.servers(); ++server) {
    derived.add_replica_micro_batches(0);
    if (of_validation > 0) derived.add_replica_validation_micro_batches(0);
  }
  derived.set_micro_batches(most);
  derived.set_validation_micro_batches(most_validation);
}

void Derive(Plan& plan) {
  const TrainingSpec& training = plan.job().training();
  Derived& derived = *plan.mutable_derived();
  derived.set_data_parallel_size(plan.job().parallelism().data());
  DeriveMicroBatches(plan.job(), derived);
  derived.set_takes_turns(TakesTurns(plan.job()));
  derived.set_tokens_per_step(int64_t{training.global_batch_size()} *
                              training.sequence_length());
}

// Ranks need not wait for one another between steps where no update waits for
// the norm of all gradients, and the schedule makes something of it. Replicas
// that run different numbers of micro-batches meet at each step's end, and so
// do ranks that evaluate, and those of an island.
int ReportLag(const Plan& plan, const Pipeline& pipeline) {
  if (MeshSize(plan.mesh()) == 1 || plan.job().evaluate()) return 0;
  if (!plan.derived().replica_micro_batches().empty()) return 0;
  if (HasIslands(plan)) return 0;
  const bool waits = UpdatesNeedNorm(plan.job().training());
  const bool gains = pipeline.asynchronous || pipeline.overlaps_steps;
  return gains && !waits ? 1 : 0;
}

PipelineShape ShapeOf(const Plan& plan) {
  const ParallelismSpec& parallelism = plan.job().parallelism();
  return {.ranks = parallelism.pipeline(),
          .micro_batches = plan.derived().micro_batches(),
          .virtual_stages = parallelism.virtual_stages()};
}

absl::Status OrderSteps(Draft& draft) {
  Plan& plan = draft.plan;
  RETURN_IF_ERROR(CheckStageCount(plan.job().parallelism(),
                                  ShapeOf(plan).stages(),
                                  UnitCount(plan.job().model())));
  ASSIGN_OR_RETURN(const Pipeline pipeline,
                   FindPipeline(plan.job().parallelism().pipeline_schedule()));
  PipelineShape shape = ShapeOf(plan);
  for (const std::string& field : pipeline.fields) {
    const bool is_set = FieldText(plan.job().parallelism(), field) == "true";
    if (is_set) shape.options.push_back(field);
  }
  ASSIGN_OR_RETURN(draft.compute_order, pipeline.order(shape));
  const std::vector<std::vector<int>> kinds = ReplicaKinds(plan);
  for (size_t k = 1; k < kinds.size(); ++k) {
    shape.micro_batches =
        ShareOf(plan.derived(), Program::TRAIN, kinds[k].front()).count;
    if (shape.micro_batches == 0) {  // servers
      draft.shorter_orders.emplace_back(shape.ranks);
      continue;
    }
    ASSIGN_OR_RETURN(ComputeOrder order, pipeline.order(shape));
    // Chimera has no second pipeline for a single micro-batch.
    if (StageHolders(order, shape.stages()) !=
        StageHolders(draft.compute_order, shape.stages())) {
      return FieldError(
          "parallelism.micro_batches",
          absl::StrCat("with ", shape.micro_batches, " of them, ",
                       pipeline.name,
                       " leaves a rank without work on a stage "
                       "that others of its place hold; give each replica "
                       "more"));
    }
    draft.shorter_orders.push_back(std::move(order));
  }
  plan.mutable_derived()->set_report_lag(ReportLag(plan, pipeline));
  plan.mutable_derived()->set_delays_gradients(
      DelaysGradients(draft.compute_order) ||
      (plan.derived().takes_turns() && plan.job().parallelism().data() > 1));
  return absl::OkStatus();
}

// Chunks of the loss go back in the forward pass: that of a later step would add
// to the gradients of this one.
absl::Status CheckChunksOfLoss(const Draft& draft) {
  const JobSpec& job = draft.plan.job();
  const int64_t tokens = int64_t{job.training().micro_batch_size()} *
                         job.training().sequence_length();
  const int64_t of_chunk = job.memory().loss_chunk_tokens();
  if (of_chunk == 0 || of_chunk >= tokens) return absl::OkStatus();
  const int last = ShapeOf(draft.plan).stages() - 1;
  for (const std::vector<ComputeStep>& steps : draft.compute_order) {
    for (const ComputeStep& step : steps) {
      if (step.stage != last || step.ahead == 0) continue;
      return FieldError(
          kLossChunksField,
          absl::StrCat("with parallelism.pipeline_schedule: ",
                       job.parallelism().pipeline_schedule(),
                       " the head goes forward in the step before it goes "
                       "back; leave it out, or use another schedule"));
    }
  }
  return absl::OkStatus();
}

// How much slower each place is than the fastest; empty: none is.
std::vector<double> SlownessOf(const PlaceSeconds& seconds, int units) {
  Stage all;
  all.set_unit_count(units);
  std::vector<double> slowness;
  for (const std::vector<EqualRanks>& place : seconds) {
    slowness.push_back(SlowestOf(place, all).seconds);
  }
  if (slowness.empty()) return slowness;
  const double least = *std::min_element(slowness.begin(), slowness.end());
  for (double& of_place : slowness) of_place /= least;
  return slowness;
}

absl::Status CutStages(const std::vector<WorkerDescription>& workers,
                       Draft& draft) {
  Plan& plan = draft.plan;
  ASSIGN_OR_RETURN(const StageLayout layout, StageLayoutOf(draft, workers));
  ASSIGN_OR_RETURN(draft.stage_units,
                   PartitionUnits({plan.units().begin(), plan.units().end()},
                                  layout, plan.job().parallelism()));
  for (size_t s = 0; s < layout.holders.size(); ++s) {
    Stage& stage = *plan.add_stages();
    stage.set_unit(draft.stage_units[s].front());
    stage.set_unit_count(static_cast<int>(draft.stage_units[s].size()));
    for (const int rank : layout.holders[s]) stage.add_pipeline_ranks(rank);
  }
  draft.slowness = SlownessOf(layout.seconds, plan.units_size());
  return absl::OkStatus();
}

// Those that are named by numbers.
absl::Status CheckUnitNumbers(const ParallelismSpec& parallelism, int units) {
  for (int s = 0; s < parallelism.strategies_size(); ++s) {
    for (const std::string& name : parallelism.strategies(s).units()) {
      int number = 0;
      if (!absl::SimpleAtoi(name, &number) || number < units) continue;
      return FieldError(absl::StrCat("parallelism.strategies[", s, "].units"),
                        absl::StrCat(number, " is no unit of ", units,
                                     "; use 0 to ", units - 1));
    }
  }
  return absl::OkStatus();
}

// Which units a stage has may say what its ranks do for them. So where there
// are strategies, stages are cut by what units cost on one rank.
absl::Status CutUnitsAndStages(const UnitList& whole,
                               const std::vector<WorkerDescription>& workers,
                               Draft& draft) {
  const ParallelismSpec& parallelism = draft.plan.job().parallelism();
  const std::vector<int> own(whole.units.size(), -1);
  if (parallelism.strategies().empty()) {
    RETURN_IF_ERROR(AddUnits(RulesByUnit(parallelism, own), whole, draft));
    return CutStages(workers, draft);
  }
  RETURN_IF_ERROR(
      CheckUnitNumbers(parallelism, static_cast<int>(whole.units.size())));
  const UnitRules uncut = {.strategies = {{}},
                           .of_unit = std::vector<int>(own.size(), 0)};
  RETURN_IF_ERROR(AddUnits(uncut, whole, draft));
  RETURN_IF_ERROR(CutStages(workers, draft));
  const std::vector<int> of_unit =
      StrategyOfUnits(parallelism, KindsOf(whole.units), draft.plan.stages());
  return AddUnits(RulesByUnit(parallelism, of_unit), whole, draft);
}

// REQUIRES placements.
absl::Status LayAllMatrices(Plan& plan) {
  for (int u = 0; u < plan.units_size(); ++u) {
    for (const Role& role : plan.roles()) {
      const Placement* const placement = FindPlacement(role, u);
      if (placement == nullptr || KeepsNoState(*placement)) continue;
      for (const Stretch& stretch : StretchesOf(plan, *placement)) {
        if (stretch.frozen || !stretch.dealt.has_value()) continue;
        const Group& group = plan.groups(*stretch.dealt);
        RETURN_IF_ERROR(LayMatrices(
            plan.job().optimizer(),
            {.part = stretch.part,
             .part_count = stretch.part_count,
             .ranks = GroupSize(plan.mesh(), group),
             .weights = {group.weights().begin(), group.weights().end()},
             .field = placement->has_served() ? "servers" : "zero_size"},
            *plan.mutable_units(u)));
      }
      break;  // all roles deal a unit alike
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool LastStageTurnsAtOnce(const ComputeOrder& order) {
  int last = 0;
  for (const std::vector<ComputeStep>& steps : order) {
    for (const ComputeStep& step : steps) last = std::max(last, step.stage);
  }
  for (const std::vector<ComputeStep>& steps : order) {
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].kind != ComputeStep::kForward || steps[i].stage != last) {
        continue;
      }
      const bool turns = i + 1 < steps.size() &&
                         steps[i + 1].kind == ComputeStep::kBackwardInput &&
                         steps[i + 1].stage == last &&
                         steps[i + 1].micro_batch == steps[i].micro_batch &&
                         steps[i + 1].ahead == steps[i].ahead;
      if (!turns) return false;
    }
  }
  return true;
}

absl::StatusOr<StageLayout> StageLayoutOf(
    const Draft& draft, const std::vector<WorkerDescription>& workers) {
  const PipelineShape shape = ShapeOf(draft.plan);
  ASSIGN_OR_RETURN(
      const Pipeline pipeline,
      FindPipeline(draft.plan.job().parallelism().pipeline_schedule()));
  return StageLayout{
      .holders = StageHolders(draft.compute_order, shape.stages()),
      .micro_batches = shape.micro_batches,
      .seconds = pipeline.asynchronous ? PlaceSeconds()
                                       : UnequalPlaces(draft.plan, workers),
      .memory = absl::nullopt};
}

namespace {

absl::StatusOr<Draft> StartDraftOf(
    const JobSpec& resolved, const std::vector<WorkerDescription>& workers,
    const ModelKinds* kinds) {
  Draft draft;
  *draft.plan.mutable_job() = resolved;
  LayMesh(draft.plan);
  *draft.plan.mutable_lanes() = LanesOf(resolved.parallelism());
  Derive(draft.plan);
  RETURN_IF_ERROR(OrderSteps(draft));
  RETURN_IF_ERROR(CheckChunksOfLoss(draft));
  RETURN_IF_ERROR(CheckIsModel(resolved));
  UnitList whole;
  if (kinds != nullptr) {
    whole = kinds->units;
  } else {
    ASSIGN_OR_RETURN(whole, WholeUnits(draft.plan));
  }
  RETURN_IF_ERROR(CutUnitsAndStages(whole, workers, draft));
  LayGroups(draft.plan);
  RETURN_IF_ERROR(LayAllMatrices(draft.plan));
  // Costs of units are asked of models with one of each kind.
  if (kinds == nullptr) RETURN_IF_ERROR(LayDecoding(draft.plan));
  return draft;
}

}  // namespace

absl::StatusOr<Draft> StartDraft(
    const JobSpec& resolved, const std::vector<WorkerDescription>& workers) {
  return StartDraftOf(resolved, workers, nullptr);
}

absl::StatusOr<ModelKinds> KindsOfModel(const JobSpec& resolved) {
  Plan plan;
  *plan.mutable_job() = resolved;
  ModelKinds kinds;
  ASSIGN_OR_RETURN(kinds.units, WholeUnits(plan));
  kinds.of_unit = KindOfUnits(kinds.units);
  KeepOneOfEachKind(kinds.of_unit, kinds.units);
  return kinds;
}

absl::StatusOr<Draft> StartDraftOfKinds(const JobSpec& resolved,
                                        const ModelKinds& kinds) {
  return StartDraftOf(resolved, {}, &kinds);
}

}  // namespace troupe
