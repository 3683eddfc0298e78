#include "scheduler/passes/expand_order.h"

#include <algorithm>
#include <vector>

#include "proto/plan/unit_passes.h"
#include "scheduler/passes/dry_run.h"
#include "scheduler/passes/lanes.h"
#include "scheduler/passes/transfers.h"

namespace troupe {
namespace {

// Of the ranks at one place on the pipeline.
class Expansion {
 public:
  Expansion(const Draft& draft, const UnitPasses& passes, int pipeline_rank,
            Program& program)
      : draft_(draft),
        passes_(passes),
        plan_(draft.plan),
        pipeline_rank_(pipeline_rank),
        trains_(program.kind() == Program::TRAIN),
        program_(program) {}

  // `transfers` of all ranks of the pipeline.
  void Run(const std::vector<ComputeStep>& steps,
           const std::vector<StepTimes>& times,
           const std::vector<StageTransfer>& transfers) {
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
    int chunk = 0;  // of rows; 0: all that is of none
  };

  void Emit(const ComputeStep& step, const Backward& backward) {
    const std::vector<int>& units = draft_.stage_units.at(step.stage);
    if (step.kind == ComputeStep::kForward) {
      for (const int u : units) EmitForward(u, step);
      return;
    }
    for (auto u = units.rbegin(); u != units.rend(); ++u) {
      EmitBackward(*u, step, backward);
    }
  }

  // A chunk of rows goes back before the next goes forward.
  void EmitForward(int u, const ComputeStep& step) {
    const auto& segments = passes_.Of(u, Instruction::FORWARD);
    int chunk = 0;
    for (size_t s = 0; s < segments.size(); ++s) {
      const int next = passes_.ChunkOf(u, segments[s].segment);
      if (next != chunk) EmitBackwardOfChunk(u, chunk, step);
      chunk = next;
      if (segments[s].use.works) Emit(Instruction::FORWARD, u, s, step);
      EmitExchange(u, segments[s].segment.exchange, Of::kValues, step);
    }
    EmitBackwardOfChunk(u, chunk, step);
  }

  void EmitBackwardOfChunk(int u, int chunk, const ComputeStep& step) {
    if (chunk == 0 || !trains_) return;
    EmitBackward(u, step, {.input = true, .weight = true, .chunk = chunk});
  }

  // What forward has not kept of a round, for both backward passes.
  void EmitRecompute(int u, int round, const ComputeStep& step) {
    const auto& segments = passes_.Of(u, Instruction::RECOMPUTE);
    for (size_t s = 0; s < segments.size(); ++s) {
      if (segments[s].use.works && RoundOf(u, segments[s].segment) == round) {
        Emit(Instruction::RECOMPUTE, u, s, step);
      }
      const int exchange = segments[s].segment.exchange;
      if (exchange < 0 || !passes_.ExchangesAgain(u, exchange) ||
          passes_.RoundOf(u, exchange) != round) {
        continue;
      }
      EmitExchange(u, exchange, Of::kValuesAgain, step);
    }
  }

  // Of one with ops.
  int RoundOf(int u, const Segment& segment) const {
    return segment.begin < segment.end ? passes_.RoundOf(u, segment.begin) : 0;
  }

  // The gradients of a segment's parameters are computed while those of its
  // input are on their way.
  //
  // Rows of experts that went in a later round are made again in front of its
  // backward passes, of which the one follows the other, so that rounds share
  // the memory.
  void EmitBackward(int u, const ComputeStep& step, const Backward& backward) {
    const auto& inputs = passes_.Of(u, Instruction::BACKWARD_INPUT);
    const auto& weights = passes_.Of(u, Instruction::BACKWARD_WEIGHT);
    if (backward.input && backward.chunk == 0) EmitRecompute(u, 0, step);
    for (size_t s = inputs.size(); s-- > 0;) {
      if (passes_.ChunkOf(u, inputs[s].segment) != backward.chunk) continue;
      const int round = RoundOf(u, inputs[s].segment);
      if (backward.input) {
        if (round > 0) EmitRecompute(u, round, step);
        if (inputs[s].use.works) Emit(Instruction::BACKWARD_INPUT, u, s, step);
        EmitExchange(u, inputs[s].segment.exchange, Of::kGradients, step);
      }
      if ((round > 0 ? backward.input : backward.weight) &&
          weights[s].use.works) {
        Emit(Instruction::BACKWARD_WEIGHT, u, s, step);
      }
    }
  }

  Instruction& Emit(Instruction::Kind kind, int unit, int segment,
                    const ComputeStep& step) {
    Instruction& instruction = *program_.add_instructions();
    instruction.set_kind(kind);
    instruction.set_lane(LaneFor(kind));
    instruction.set_unit(unit);
    instruction.set_segment(segment);
    instruction.set_micro_batch(step.micro_batch);
    instruction.set_ahead(step.ahead);
    if (step.weight_version > 0) {
      instruction.set_weight_version(step.weight_version);
    }
    return instruction;
  }

  enum class Of { kValues, kValuesAgain, kGradients };
  void EmitExchange(int unit, int op, Of of, const ComputeStep& step) {
    if (op < 0) return;
    const UnitTable& table = plan_.tables(plan_.units(unit).table());
    const Op::Exchange& exchange = table.ops(op).exchange();
    Instruction& instruction = Emit(Instruction::EXCHANGE, unit, 0, step);
    instruction.clear_weight_version();
    instruction.set_group(ExchangeGroup(plan_, exchange));
    Instruction::Exchange& what = *instruction.mutable_exchange();
    what.set_op(op);
    const bool backward = of == Of::kGradients;
    what.set_backward(backward);
    what.set_again(of == Of::kValuesAgain);
    what.set_collective(backward ? exchange.backward() : exchange.forward());
    what.set_dtype(table.tensors(table.ops(op).inputs(0).tensor()).dtype());
  }

  void Emit(const StageTransfer& transfer) {
    const bool sends = transfer.from == pipeline_rank_;
    if (!sends && transfer.to != pipeline_rank_) return;
    Instruction& instruction = *program_.add_instructions();
    const auto kind = sends ? Instruction::SEND : Instruction::RECV;
    instruction.set_kind(kind);
    instruction.set_lane(transfer.gradient ? LaneNamed("GRADIENTS")
                                           : LaneFor(kind));
    instruction.set_gradient(transfer.gradient);
    instruction.set_unit(transfer.unit);
    instruction.set_output(transfer.output);
    instruction.set_micro_batch(transfer.micro_batch);
    instruction.set_ahead(transfer.ahead);
    instruction.set_peer(sends ? transfer.to : transfer.from);
    instruction.set_group(TransferGroup(plan_, transfer.gradient));
  }

  const Draft& draft_;
  const UnitPasses& passes_;
  const Plan& plan_;
  const int pipeline_rank_;
  const bool trains_;
  Program& program_;
};

void AddEmptyPrograms(Program::Kind kind, int replica_kind, Draft& draft) {
  const int places = static_cast<int>(draft.compute_order.size());
  for (int p = 0; p < places; ++p) {
    draft.plan.mutable_roles(replica_kind * places + p)
        ->add_programs()
        ->set_kind(kind);
  }
}

}  // namespace

void ExpandOrder(const ComputeOrder& order, const ComputeOrder& homes,
                 Program::Kind kind, int replica_kind, Draft& draft) {
  const bool computes = std::any_of(
      order.begin(), order.end(),
      [](const std::vector<ComputeStep>& steps) { return !steps.empty(); });
  if (!computes) {  // servers
    AddEmptyPrograms(kind, replica_kind, draft);
    return;
  }
  const std::vector<std::vector<StepTimes>> times =
      DryRun(draft, order, kind == Program::TRAIN ? RunsUntilSteady(draft) : 1);
  const std::vector<StageTransfer> transfers =
      TransfersOf(draft, order, homes, times);
  const UnitPasses passes(draft.plan);
  const int places = static_cast<int>(order.size());
  for (int p = 0; p < places; ++p) {
    Program& program =
        *draft.plan.mutable_roles(replica_kind * places + p)->add_programs();
    program.set_kind(kind);
    Expansion(draft, passes, p, program)
        .Run(order.at(p), times.at(p), transfers);
  }
}

}  // namespace troupe
