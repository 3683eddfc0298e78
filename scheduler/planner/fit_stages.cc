#include "scheduler/planner/fit_stages.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/find_program.h"
#include "proto/plan/memory.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/partition.h"
#include "scheduler/planner/start_draft.h"

namespace troupe {
namespace {

constexpr int kPlansMax = 4;

int PlaceOf(const Plan& plan, const Role& role) {
  return CoordinateOn(plan.mesh(), "pipeline", FirstRankOf(plan.mesh(), role));
}

// By place on the pipeline: what its smallest device has for slots; absent: its
// workers do not say.
using Budgets = std::vector<absl::optional<int64_t>>;

Budgets BudgetsOf(const Plan& plan,
                  const std::vector<WorkerDescription>& workers) {
  Budgets budgets(plan.job().parallelism().pipeline());
  const Budgets by_role = LeastOfDeviceByRole(plan, workers);
  for (int r = 0; r < plan.roles_size(); ++r) {
    absl::optional<int64_t>& budget = budgets[PlaceOf(plan, plan.roles(r))];
    if (!by_role[r].has_value()) continue;
    budget = std::min(budget.value_or(*by_role[r]), *by_role[r]);
  }
  return budgets;
}

bool Differ(const Budgets& budgets) {
  const auto known = [](const auto& budget) { return budget.has_value(); };
  return std::all_of(budgets.begin(), budgets.end(), known) &&
         std::adjacent_find(budgets.begin(), budgets.end(),
                            std::not_equal_to<>()) != budgets.end();
}

absl::StatusOr<bool> MayMoveUnits(
    const Plan& plan, const std::vector<WorkerDescription>& workers) {
  const ParallelismSpec& parallelism = plan.job().parallelism();
  if (parallelism.pipeline() == 1 || !parallelism.stages().empty()) {
    return false;
  }
  ASSIGN_OR_RETURN(const Pipeline schedule,
                   FindPipeline(parallelism.pipeline_schedule()));
  return !schedule.asynchronous && Differ(BudgetsOf(plan, workers));
}

// What the role's units have on the device. A micro-batch that any unit has
// tells of all.
void AddUnits(const Role& role, StageMemory& memory) {
  const Program* const step = StepProgram(role);
  if (step == nullptr) return;
  std::vector<int64_t> resident(memory.resident.size(), 0);
  std::vector<int64_t> kept(memory.kept.size(), 0);
  for (const Buffer& buffer : step->buffers()) {
    if (!buffer.has_unit() || IsFetched(buffer) || TierOf(buffer) != DEVICE) {
      continue;
    }
    if (IsResident(buffer)) resident[buffer.unit()] += buffer.bytes();
    const bool is_kept =
        buffer.kind() == Buffer::ACTIVATION || buffer.kind() == Buffer::STASH;
    if (is_kept && buffer.micro_batch() == 0) {
      kept[buffer.unit()] += buffer.bytes();
    }
  }
  for (size_t u = 0; u < resident.size(); ++u) {
    memory.resident[u] = std::max(memory.resident[u], resident[u]);
    memory.kept[u] = std::max(memory.kept[u], kept[u]);
  }
}

StageMemory MemoryOf(const Plan& plan, const Budgets& budgets,
                     const ComputeOrder& order) {
  StageMemory memory;
  memory.in_flight = InFlight(order, plan.stages_size());
  memory.resident.resize(plan.units_size(), 0);
  memory.kept.resize(plan.units_size(), 0);
  for (const Role& role : plan.roles()) AddUnits(role, memory);
  for (const auto& budget : budgets) memory.room.push_back(*budget);
  std::vector<int64_t> needs(budgets.size(),
                             0);  // of what is in no stage's sum
  for (const Role& role : plan.roles()) {
    int64_t& need = needs[PlaceOf(plan, role)];
    need = std::max(need, BytesIn(role, DEVICE));
  }
  for (int s = 0; s < plan.stages_size(); ++s) {
    const Stage& stage = plan.stages(s);
    for (const int place : stage.pipeline_ranks()) {
      for (int u = stage.unit(); u < stage.unit() + stage.unit_count(); ++u) {
        needs[place] -=
            memory.resident[u] + memory.in_flight[s] * memory.kept[u];
      }
    }
  }
  for (size_t p = 0; p < needs.size(); ++p) memory.room[p] -= needs[p];
  return memory;
}

}  // namespace

std::vector<int> InFlight(const ComputeOrder& order, size_t stages) {
  std::vector<int> most(stages, 0);
  for (const std::vector<ComputeStep>& steps : order) {
    std::vector<int> now(stages, 0);
    for (const ComputeStep& step : steps) {
      int& count = now[step.stage];
      if (step.kind == ComputeStep::kForward) ++count;
      if (step.kind == ComputeStep::kBackwardWeight) --count;
      most[step.stage] = std::max(most[step.stage], count);
    }
  }
  return most;
}

absl::StatusOr<absl::optional<Plan>> FitStages(
    const Plan& lacks, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build) {
  ASSIGN_OR_RETURN(const bool may_move, MayMoveUnits(lacks, workers));
  if (!may_move) return absl::nullopt;
  const JobSpec& job = lacks.job();
  ASSIGN_OR_RETURN(const Draft draft, StartDraft(job, workers));
  ASSIGN_OR_RETURN(StageLayout layout, StageLayoutOf(draft, workers));
  Plan plan = lacks;
  for (int i = 0; i < kPlansMax; ++i) {
    layout.memory =
        MemoryOf(plan, BudgetsOf(plan, workers), draft.compute_order);
    ASSIGN_OR_RETURN(const auto stages,
                     PartitionUnits({plan.units().begin(), plan.units().end()},
                                    layout, job.parallelism()));
    JobSpec other = job;
    bool same = true;
    for (size_t s = 0; s < stages.size(); ++s) {
      const int count = static_cast<int>(stages[s].size());
      other.mutable_parallelism()->add_stages(count);
      same &= count == plan.stages(s).unit_count();
    }
    if (same) return absl::nullopt;
    ASSIGN_OR_RETURN(plan, build(other));
    if (CheckMemory(plan, workers).ok()) return plan;
  }
  return absl::nullopt;
}

}  // namespace troupe
