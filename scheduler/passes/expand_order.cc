#include "scheduler/passes/expand_order.h"

#include <vector>

#include "proto/plan/mesh.h"
#include "proto/plan/program_text.h"
#include "scheduler/passes/dry_run.h"
#include "scheduler/passes/transfers.h"

namespace troupe {
namespace {

// Of one rank.
class Expansion {
 public:
  Expansion(const Draft& draft, int rank, Program& program)
      : draft_(draft),
        plan_(draft.plan),
        data_index_(CoordinateOn(plan_.mesh(), "data", rank)),
        pipeline_rank_(CoordinateOn(plan_.mesh(), "pipeline", rank)),
        program_(program) {}

  // `transfers` of all ranks of the pipeline.
  void Run(const std::vector<ComputeStep>& steps,
           const std::vector<StepTimes>& times,
           const std::vector<Transfer>& transfers) {
    auto transfer = transfers.begin();
    for (size_t i = 0; i < steps.size(); ++i) {
      // Times that are the same may differ in their last bits.
      const double soon =
          times[i].start + 0.01 * (times[i].end - times[i].start);
      for (; transfer != transfers.end() && transfer->time <= soon;
           ++transfer) {
        Emit(*transfer);
      }
      const ComputeStep& step = steps[i];
      if (i + 1 < steps.size() && OneBackward(step, steps[i + 1])) {
        Emit(step, {.input = true, .weight = true});
        ++i;
      } else {
        Emit(step, {.input = step.kind == ComputeStep::kBackwardInput,
                    .weight = step.kind == ComputeStep::kBackwardWeight});
      }
    }
    for (; transfer != transfers.end(); ++transfer) Emit(*transfer);
  }

 private:
  struct Backward {
    bool input = false;
    bool weight = false;
  };

  void Emit(const ComputeStep& step, const Backward& backward) {
    const std::vector<int>& units = draft_.stage_units.at(step.stage);
    if (step.kind == ComputeStep::kForward) {
      for (const int u : units) Emit(Instruction::FORWARD, u, step);
      return;
    }
    for (auto u = units.rbegin(); u != units.rend(); ++u) {
      if (backward.input && plan_.units(*u).kind() != Unit::EMBEDDING) {
        Emit(Instruction::BACKWARD_INPUT, *u, step);
      }
      if (backward.weight) Emit(Instruction::BACKWARD_WEIGHT, *u, step);
    }
  }

  void Emit(Instruction::Kind kind, int unit, const ComputeStep& step) {
    Instruction& instruction = *program_.add_instructions();
    instruction.set_kind(kind);
    instruction.set_lane(UsualLane(kind));
    instruction.set_unit(unit);
    instruction.set_micro_batch(step.micro_batch);
    instruction.set_ahead(step.ahead);
    if (step.weight_version > 0) {
      instruction.set_weight_version(step.weight_version);
    }
  }

  void Emit(const Transfer& transfer) {
    const bool sends = transfer.from == pipeline_rank_;
    if (!sends && transfer.to != pipeline_rank_) return;
    Instruction& instruction = *program_.add_instructions();
    instruction.set_kind(sends ? Instruction::SEND : Instruction::RECV);
    instruction.set_lane(transfer.lane);
    instruction.set_unit(transfer.unit);
    instruction.set_micro_batch(transfer.micro_batch);
    instruction.set_ahead(transfer.ahead);
    instruction.set_peer(RankAt(
        plan_.mesh(), {sends ? transfer.to : transfer.from, data_index_}));
    instruction.set_group(TransferGroup(plan_, data_index_, transfer.lane));
  }

  const Draft& draft_;
  const Plan& plan_;
  const int data_index_;
  const int pipeline_rank_;
  Program& program_;
};

}  // namespace

void ExpandOrder(const ComputeOrder& order, const ComputeOrder& homes,
                 Program::Kind kind, Draft& draft) {
  const std::vector<std::vector<StepTimes>> times =
      DryRun(draft, order, kind == Program::TRAIN ? RunsUntilSteady(draft) : 1);
  const std::vector<Transfer> transfers =
      TransfersOf(draft, order, homes, times);
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    Program& program = *rank.add_programs();
    program.set_kind(kind);
    const int p = CoordinateOn(draft.plan.mesh(), "pipeline", rank.rank());
    Expansion(draft, rank.rank(), program)
        .Run(order.at(p), times.at(p), transfers);
  }
}

}  // namespace troupe
