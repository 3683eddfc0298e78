#include "scheduler/passes/expand_stages.h"

#include "proto/plan/mesh.h"
#include "proto/plan/program_text.h"

namespace troupe {
namespace {

class Expansion {
 public:
  Expansion(const Plan& plan, Program& program)
      : plan_(plan), program_(program) {}

  void Forward(const std::vector<int>& units, int micro_batch) {
    for (const int u : units) Emit(Instruction::FORWARD, u, micro_batch);
  }

  struct Backward {
    bool input = false;
    bool weight = false;
  };
  void Run(const Backward& backward, const std::vector<int>& units,
           int micro_batch) {
    for (auto u = units.rbegin(); u != units.rend(); ++u) {
      if (backward.input && plan_.units(*u).kind() != Unit::EMBEDDING) {
        Emit(Instruction::BACKWARD_INPUT, *u, micro_batch);
      }
      if (backward.weight) {
        Emit(Instruction::BACKWARD_WEIGHT, *u, micro_batch);
      }
    }
  }

 private:
  void Emit(Instruction::Kind kind, int unit, int micro_batch) {
    Instruction& instruction = *program_.add_instructions();
    instruction.set_kind(kind);
    instruction.set_lane(UsualLane(kind));
    instruction.set_unit(unit);
    instruction.set_micro_batch(micro_batch);
  }

  const Plan& plan_;
  Program& program_;
};

bool Fused(const ComputeStep& first, const ComputeStep& second) {
  return first.kind == ComputeStep::kBackwardInput &&
         second.kind == ComputeStep::kBackwardWeight &&
         first.stage == second.stage && first.micro_batch == second.micro_batch;
}

}  // namespace

void ExpandStages(Draft& draft) {
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    Program& program = *rank.add_programs();
    program.set_kind(Program::TRAIN);
    Expansion expansion(draft.plan, program);
    const std::vector<ComputeStep>& steps = draft.compute_order.at(
        CoordinateOn(draft.plan.mesh(), "pipeline", rank.rank()));
    for (size_t i = 0; i < steps.size(); ++i) {
      const ComputeStep& step = steps[i];
      const std::vector<int>& units = draft.stage_units.at(step.stage);
      if (step.kind == ComputeStep::kForward) {
        expansion.Forward(units, step.micro_batch);
      } else if (i + 1 < steps.size() && Fused(step, steps[i + 1])) {
        expansion.Run({.input = true, .weight = true}, units, step.micro_batch);
        ++i;
      } else {
        const bool input = step.kind == ComputeStep::kBackwardInput;
        expansion.Run({.input = input, .weight = !input}, units,
                      step.micro_batch);
      }
    }
  }
}

}  // namespace troupe
