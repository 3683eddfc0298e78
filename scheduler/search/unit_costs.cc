#include "scheduler/search/unit_costs.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/find_program.h"
#include "proto/plan/lanes.h"
#include "proto/plan/rank_classes.h"
#include "proto/plan/ranks_needed.h"
#include "proto/plan/sharing.h"
#include "proto/plan/strategies.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/layouts/zero.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"
#include "scheduler/simulate/adapters.h"
#include "scheduler/simulate/cost_model.h"
#include "scheduler/simulate/effort.h"
#include "scheduler/simulate/gpu_scratch.h"
#include "scheduler/simulate/run_programs.h"

namespace troupe {
namespace {

constexpr double kNs = 1e-9;

// Once a step, whatever its micro-batches: priced by themselves.
bool IsOfStep(Instruction::Kind kind) {
  return kind == Instruction::REDUCE_GRADS || kind == Instruction::GRAD_NORM ||
         kind == Instruction::REDUCE_SCALARS || kind == Instruction::STEP;
}

bool IsBackward(Instruction::Kind kind) {
  return kind == Instruction::RECOMPUTE ||
         kind == Instruction::BACKWARD_INPUT ||
         kind == Instruction::BACKWARD_WEIGHT;
}

bool IsPass(Instruction::Kind kind) {
  return kind == Instruction::FORWARD || IsBackward(kind);
}

// The workers, were they machines like this one.
std::vector<WorkerDescription> PutOn(const WorkerDescription& machine,
                                     std::vector<WorkerDescription> workers) {
  for (WorkerDescription& worker : workers) {
    *worker.mutable_calibration() = machine.calibration();
    worker.set_threads(machine.threads());
  }
  return workers;
}

class Coster {
 public:
  Coster(const Plan& plan, const std::vector<WorkerDescription>& workers,
         const std::vector<const WorkerDescription*>& machines)
      : plan_(plan),
        costs_(plan, workers),
        train_(*FindProgram(plan.roles(0), Program::TRAIN)),
        units_(plan.units_size()) {
    for (const WorkerDescription* const machine : machines) {
      others_.push_back(
          std::make_unique<CostModel>(plan, PutOn(*machine, workers)));
    }
  }

  std::vector<UnitCost> Run() {
    for (UnitCost& unit : units_) {
      for (PassSeconds* const pass :
           {&unit.forward, &unit.backward, &unit.input, &unit.weight,
            &unit.step, &unit.norm}) {
        pass->compute_of_others.resize(others_.size(), 0);
      }
    }
    AddTimes();
    AddMemory();
    for (int u = 0; u < plan_.units_size(); ++u) {
      const Unit& unit = plan_.units(u);
      units_[u].nominal.set_kind(unit.kind());
      *units_[u].nominal.mutable_forward() = unit.forward();
      *units_[u].nominal.mutable_backward_input() = unit.backward_input();
      *units_[u].nominal.mutable_backward_weight() = unit.backward_weight();
      if (unit.has_recompute()) {
        *units_[u].nominal.mutable_recompute() = unit.recompute();
      }
      units_[u].output_bytes = unit.activation_bytes();
    }
    return std::move(units_);
  }

 private:
  bool Computes(const Instruction& instruction) const {
    return KindOfLane(plan_.lanes(), instruction.lane()) == Lane::COMPUTE;
  }

  ProgramsRun Simulate() const {
    const RankClasses classes(plan_, costs_.Traits());
    return RunPrograms(plan_, classes,
                       [this](int rank, const Instruction& instruction) {
                         return IsOfStep(instruction.kind())
                                    ? Effort()
                                    : EffortOf(costs_.CostOf(rank, instruction),
                                               Computes(instruction));
                       },
                       {.seats = {},
                        .adapters = UsesOf(costs_.adapters(), classes),
                        .is_enough = nullptr});
  }

  // A unit's pass lasts until the next one's begins, so that exchanges count
  // where passes wait for them.
  void AddTimes() {
    const ProgramsRun run = Simulate();
    const RankTimes& times = run.ranks.front();
    PassSeconds* now = nullptr;
    int64_t began = 0;
    int64_t ended = 0;
    const auto end_pass = [&](int64_t end) {
      if (now != nullptr) now->all += static_cast<double>(end - began) * kNs;
    };
    for (int i = 0; i < train_.instructions_size(); ++i) {
      const Instruction& instruction = train_.instructions(i);
      const Instruction::Kind kind = instruction.kind();
      AddAlone(instruction);
      if (IsPass(kind) || kind == Instruction::EXCHANGE) {
        ++units_[instruction.unit()].instructions;
      }
      if (!IsPass(kind)) continue;
      UnitCost& unit = units_[instruction.unit()];
      PassSeconds* const pass =
          kind == Instruction::FORWARD ? &unit.forward : &unit.backward;
      if (pass != now) {
        end_pass(times.instructions[i].runs);
        now = pass;
        began = times.instructions[i].runs;
      }
      AddCompute(instruction, *pass);
      ended = std::max(ended, times.instructions[i].end);
    }
    end_pass(ended);
  }

  void AddCompute(const Instruction& instruction, PassSeconds& pass) const {
    pass.compute += costs_.CostOf(0, instruction).total();
    for (size_t m = 0; m < others_.size(); ++m) {
      pass.compute_of_others[m] += others_[m]->CostOf(0, instruction).total();
    }
  }

  // What an instruction takes by itself.
  void AddAlone(const Instruction& instruction) {
    if (!instruction.has_unit()) return;
    const Instruction::Kind kind = instruction.kind();
    UnitCost& unit = units_[instruction.unit()];
    const double seconds = costs_.CostOf(0, instruction).total();
    const auto add = [&](PassSeconds& pass, bool computes) {
      pass.all += seconds;
      if (computes) AddCompute(instruction, pass);
    };
    if (kind == Instruction::STEP) add(unit.step, true);
    if (kind == Instruction::GRAD_NORM) add(unit.norm, true);
    if (kind == Instruction::BACKWARD_WEIGHT) add(unit.weight, true);
    if (kind == Instruction::BACKWARD_INPUT || kind == Instruction::RECOMPUTE) {
      add(unit.input, true);
    }
    if (kind == Instruction::EXCHANGE && instruction.exchange().backward()) {
      add(unit.input, false);
    }
  }

  // By buffer.
  std::vector<bool> ReadForWeights() const {
    std::vector<bool> read(train_.buffers_size(), false);
    for (const Instruction& instruction : train_.instructions()) {
      if (instruction.kind() != Instruction::BACKWARD_WEIGHT) continue;
      for (const Instruction::Operand& operand : instruction.operands()) {
        read[operand.buffer()] =
            read[operand.buffer()] || operand.access() == Instruction::READ;
      }
    }
    return read;
  }

  void AddMemory() {
    const std::vector<bool> read = ReadForWeights();
    for (int i = 0; i < train_.buffers_size(); ++i) {
      const Buffer& buffer = train_.buffers(i);
      if (!buffer.has_unit() || TierOf(buffer) != DEVICE) continue;
      UnitCost& unit = units_[buffer.unit()];
      const int64_t bytes = buffer.bytes();
      const int64_t for_weight = read[i] ? bytes : 0;
      switch (buffer.kind()) {
        case Buffer::PARAMETERS:
          unit.parameter_bytes += bytes;
          break;
        case Buffer::PARAMETER_GRADIENTS:
          unit.gradient_bytes += bytes;
          break;
        case Buffer::MASTER_WEIGHTS:
        case Buffer::OPTIMIZER_STATE:
          unit.state_bytes += bytes;
          break;
        case Buffer::ACTIVATION:
        case Buffer::STASH:
          unit.kept_bytes += bytes;
          unit.kept_for_weight += for_weight;
          if (buffer.kind() == Buffer::ACTIVATION && read[i]) {
            unit.output_is_for_weight = true;
          }
          break;
        case Buffer::GRADIENT:
        case Buffer::WEIGHT_STASH:
        case Buffer::RECOMPUTED:
        case Buffer::SEGMENT_GRADIENTS:
          unit.pass_bytes += bytes;
          unit.deferred_bytes += for_weight;
          break;
        default:
          break;
      }
    }
    const std::vector<int> strategies = StrategyOfUnits(
        plan_.job().parallelism(), KindsOf(plan_.units()), plan_.stages());
    for (int u = 0; u < plan_.units_size(); ++u) {
      units_[u].workspace_bytes = plan_.units(u).workspace_bytes();
      const ParallelismSpec& job = plan_.job().parallelism();
      AddPieces(strategies[u] < 0
                    ? job
                    : WithStrategy(job, job.strategies(strategies[u])),
                plan_.units(u), units_[u]);
    }
  }

  static void AddPieces(const ParallelismSpec& parallelism, const Unit& unit,
                        UnitCost& cost) {
    cost.alike = DealtMost(parallelism) / ReplicasOf(parallelism);
    for (const Unit::Part& part : unit.parts()) {
      if (part.elements() == 0) continue;
      cost.shares_in_pieces[PiecesAmongDealt(parallelism, part)] +=
          static_cast<double>(part.elements()) /
          static_cast<double>(unit.flat_elements());
    }
  }

  const Plan& plan_;
  const CostModel costs_;
  std::vector<std::unique_ptr<CostModel>> others_;  // of other machines
  const Program& train_;
  std::vector<UnitCost> units_;
};

// One stage and one replica of the way, with one micro-batch and nothing beside
// its steps.
JobSpec OneStageOf(const JobSpec& job, const Candidate& candidate) {
  JobSpec way = JobOf(job, candidate);
  ParallelismSpec stage;
  CopySharing(candidate.parallelism, stage);
  *stage.mutable_strategies() = candidate.parallelism.strategies();
  stage.set_data(RanksOfReplica(candidate.parallelism));
  *way.mutable_parallelism() = stage;
  way.mutable_training()->set_global_batch_size(candidate.micro_batch_size *
                                                stage.data());
  way.mutable_training()->clear_validate_every();
  way.mutable_training()->clear_validation_sequences();
  way.mutable_memory()->clear_unsharded_bytes();
  way.clear_checkpoint();
  way.clear_recovery();
  way.clear_elastic();
  return way;
}

// Then each unit is a kind of its own.
bool NamesUnits(const RecomputeSpec& recompute) {
  return !recompute.units().empty() || !recompute.selective_units().empty();
}

// The first `count`, each with a processor of its own: what ranks share is
// counted for all that the job has.
std::vector<WorkerDescription> Uncrowded(
    const std::vector<WorkerDescription>& workers, int count) {
  std::vector<WorkerDescription> alone(workers.begin(),
                                       workers.begin() + count);
  for (WorkerDescription& worker : alone) worker.clear_host_cores();
  return alone;
}

// Ranks that deal a part of which they have `pieces` pieces.
int DealtOver(int neighbours, int pieces) {
  return std::max(1, neighbours / pieces);
}

}  // namespace

void PassSeconds::Add(const PassSeconds& other, double times) {
  all += times * other.all;
  compute += times * other.compute;
  compute_of_others.resize(other.compute_of_others.size(), 0);
  for (size_t m = 0; m < compute_of_others.size(); ++m) {
    compute_of_others[m] += times * other.compute_of_others[m];
  }
}

double UnitCost::ShareAtRest(int neighbours) const {
  double rests = 0;
  for (const auto& [pieces, share] : shares_in_pieces) {
    rests += share / DealtOver(neighbours, pieces);
  }
  return rests;
}

double UnitCost::ShareDealt(int neighbours) const {
  double dealt = 0;
  for (const auto& [pieces, share] : shares_in_pieces) {
    if (DealtOver(neighbours, pieces) > 1) dealt += share;
  }
  return dealt;
}

UnitCosts MixCosts(const ParallelismSpec& parallelism,
                   const std::vector<const UnitCosts*>& by_strategy,
                   const UnitCosts& on_one_rank, const UnitCosts* mixed) {
  const UnitCosts& own = *by_strategy.front();
  std::vector<Unit::Kind> unit_kinds;
  for (const UnitCost& cost : own.kinds) {
    unit_kinds.push_back(cost.nominal.kind());
  }
  const std::vector<int> strategies =
      StrategyOfUnits(parallelism, unit_kinds, {});
  UnitCosts result;
  for (const UnitCosts* const costs : by_strategy) {
    result.scratch_bytes = std::max(result.scratch_bytes, costs->scratch_bytes);
  }
  if (mixed != nullptr) result.scratch_bytes = mixed->scratch_bytes;
  // The first unit of each kind, and the others.
  for (size_t kind = 0; kind < own.kinds.size(); ++kind) {
    const UnitCost& by_itself = by_strategy[strategies[kind] + 1]->kinds[kind];
    for (const bool first : {true, false}) {
      result.kinds.push_back(first && mixed != nullptr ? mixed->kinds[kind]
                                                       : by_itself);
      result.kinds.back().nominal = on_one_rank.kinds[kind].nominal;
    }
  }
  std::vector<bool> seen(own.kinds.size(), false);
  for (const int kind : own.kind_of_unit) {
    result.kind_of_unit.push_back(2 * kind + (seen[kind] ? 1 : 0));
    seen[kind] = true;
  }
  if (own.tied_to >= 0) result.tied_to = 2 * own.tied_to;
  return result;
}

absl::StatusOr<UnitCosts> CostUnits(
    const JobSpec& job, const Candidate& candidate,
    const std::vector<WorkerDescription>& all,
    const std::vector<const WorkerDescription*>& machines,
    const FindKinds& kinds_of) {
  ASSIGN_OR_RETURN(const JobSpec way, ResolveJob(OneStageOf(job, candidate)));
  const std::vector<WorkerDescription> workers =
      Uncrowded(all, RanksNeeded(way));
  Draft draft;
  UnitCosts result;
  if (NamesUnits(way.memory().recompute())) {
    ASSIGN_OR_RETURN(draft, StartDraft(way));
    result.kind_of_unit.resize(draft.plan.units_size());
    std::iota(result.kind_of_unit.begin(), result.kind_of_unit.end(), 0);
  } else {
    ASSIGN_OR_RETURN(const ModelKinds* const kinds, kinds_of(way));
    ASSIGN_OR_RETURN(draft, StartDraftOfKinds(way, *kinds));
    result.kind_of_unit = kinds->of_unit;
  }
  RunPasses(draft);
  Plan& plan = draft.plan;
  ChooseBackends(workers, plan.mesh(), *plan.mutable_groups());
  result.kinds = Coster(plan, workers, machines).Run();
  for (const MemoryItem& item : GpuScratchItems(plan)) {
    result.scratch_bytes += item.bytes();
  }
  for (const Unit& unit : plan.units()) {
    if (unit.tied_size() > 0) result.tied_to = unit.tied(0).unit();
  }
  return result;
}

}  // namespace troupe
