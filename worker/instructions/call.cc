#include "worker/instructions/call.h"

#include <utility>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/groups.h"
#include "proto/plan/islands.h"
#include "proto/plan/meeting.h"
#include "proto/plan/mesh.h"
#include "proto/plan/operand.h"
#include "proto/plan/part_state.h"
#include "proto/plan/program_text.h"
#include "proto/plan/replica_share.h"

namespace troupe {
namespace {

// Islands take at most this number of times as long as predicted for what they
// train by themselves.
constexpr double kDriftMost = 2;

// Whether islands meet in it, wherever they are in a round: to exchange, to
// validate, to hand each other copies of their states.
bool MayHaveDrifted(const Call& call) {
  const Plan& plan = *call.state.plan;
  if (!HasIslands(plan)) return false;
  if (call.instruction.has_when()) return true;
  return IsCollective(call.instruction.kind()) &&
         Spans(plan.mesh(), plan.groups(call.instruction.group()), kIslandAxis);
}

// Whether nothing of the step was added to the gradients that the call adds to.
bool AddsToZeros(const Call& call) {
  bool zeros = false;
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    const bool gradients = operand.part() == Instruction::WEIGHT_GRADIENTS ||
                           operand.part() == Instruction::TIED_GRADIENTS;
    if (!gradients || operand.access() == Instruction::READ) continue;
    if (operand.access() == Instruction::ADD) return false;
    zeros = true;
  }
  return zeros;
}

// What a pass finds of a unit's parameters, or of their gradients, in a buffer.
void AddTo(FlatMemory& flat, const Call& call, const Buffer& buffer,
           char* memory) {
  const bool apart = buffer.kind() == Buffer::UNSHARDED_PARAMETERS ||
                     buffer.kind() == Buffer::UNSHARDED_GRADIENTS;
  if (!apart && !buffer.slice()) {
    flat = FlatMemory(memory);
    return;
  }
  const int64_t width =
      BytesOfFlat(call.state.plan->units(buffer.unit()), buffer.kind());
  for (const StretchAtRest& at : call.state.AtRest(buffer.unit())) {
    if (at.stretch.dealt.has_value() != apart) continue;
    const int64_t first = apart ? at.stretch.unsharded : at.first;
    flat.Add(at.stretch.all, memory + first * width, width);
  }
}

}  // namespace

const Buffer* FindBuffer(const Call& call, Instruction::Part part) {
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    if (operand.part() != part) continue;
    return &call.program.buffers(operand.buffer());
  }
  return nullptr;
}

Instruction::Access AccessTo(const Call& call, Instruction::Part part) {
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    if (operand.part() == part) return operand.access();
  }
  return Instruction::READ;
}

TierAddress AddressOf(const Call& call, const Buffer& buffer) {
  return call.state.memory.At(buffer, call.state.step.step);
}

char* MemoryOf(const Call& call, const Buffer& buffer) {
  return AddressOf(call, buffer).memory();
}

char* Operand(const Call& call, Instruction::Part part) {
  const Buffer* buffer = FindBuffer(call, part);
  return buffer == nullptr ? nullptr : MemoryOf(call, *buffer);
}

char* NeedOperand(const Call& call, Instruction::Part part) {
  char* const memory = Operand(call, part);
  CHECK(memory != nullptr) << InstructionWords(call.instruction) << " has no "
                           << Instruction::Part_Name(part);
  return memory;
}

OperandBytes BytesOfOperand(const Call& call, Instruction::Part part) {
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    if (operand.part() != part) continue;
    const Buffer& buffer = call.program.buffers(operand.buffer());
    const BytesUsed used = BytesOf(operand, buffer);
    return {.data = MemoryOf(call, buffer) + used.begin,
            .bytes = used.end - used.begin};
  }
  return {};
}

TierAddress RestAddress(const Call& call, Instruction::Part part,
                        const StretchAtRest& at) {
  const Buffer* const buffer = FindBuffer(call, part);
  if (buffer == nullptr) return {};
  return call.state.RestIn(*buffer, AddressOf(call, *buffer), at);
}

char* RestOf(const Call& call, Instruction::Part part,
             const StretchAtRest& at) {
  return RestAddress(call, part, at).memory();
}

StretchAtRest StretchOf(const Call& call) {
  const RankState& state = call.state;
  return AtRestWith(*state.plan, state.PlacementOf(call.instruction.unit()),
                    call.instruction.part(), state.rank());
}

Range DutyOf(const Call& call) {
  const RankState& state = call.state;
  const Range duty =
      DutyOf(*state.plan, state.PlacementOf(call.instruction.unit()),
             call.instruction.part(), state.rank());
  const int64_t first = StretchOf(call).rests.begin;
  return {duty.begin - first, duty.end - first};
}

CommOptions CommOptionsOf(const Call& call, std::string what) {
  const RankState& state = call.state;
  bool meet = state.step.meet || call.instruction.has_when();
  absl::Duration timeout = state.collective_timeout;
  if (MayHaveDrifted(call)) {
    timeout +=
        kDriftMost *
        absl::Seconds(state.plan->prediction().step_seconds() *
                      static_cast<double>(state.plan->job().islands().every()));
  }
  if (call.instruction.kind() == Instruction::REDUCE_SCALARS &&
      call.program.kind() != Program::VALIDATE &&
      !call.instruction.has_when()) {
    // Of a step, ranks may sum them in different runs and programs.
    meet = StepOf(call) <= state.first_step;
  }
  return {.name = std::move(what), .timeout = timeout, .meet = meet};
}

int64_t StepOf(const Call& call) {
  return call.state.step.step + call.instruction.ahead();
}

int64_t SamplesBefore(const Call& call) {
  return call.state.step.samples_before +
         int64_t{call.instruction.ahead()} *
             call.state.plan->job().training().global_batch_size();
}

const ModelUnit& UnitOf(const Call& call) {
  return *call.state.units.at(call.instruction.unit());
}

UnitBuffers BuffersOf(const Call& call) {
  UnitBuffers buffers;
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    const Buffer& buffer = call.program.buffers(operand.buffer());
    char* const memory = MemoryOf(call, buffer);
    switch (operand.part()) {
      case Instruction::BATCH:
        buffers.batch = memory;
        break;
      case Instruction::INPUT:
        buffers.input[operand.port()] = memory;
        break;
      case Instruction::OUTPUT:
        buffers.output[operand.port()] = memory;
        break;
      case Instruction::SAVED:
        buffers.stash = memory;
        break;
      case Instruction::OUTPUT_GRADIENT:
        buffers.output_gradient[operand.port()] = memory;
        break;
      case Instruction::INPUT_GRADIENT:
        buffers.input_gradient[operand.port()] = memory;
        break;
      case Instruction::SAVED_GRADIENTS:
        buffers.weight_stash = memory;
        break;
      case Instruction::SCRATCH:
        buffers.workspace = memory;
        break;
      case Instruction::SEGMENT:
        buffers.segment = memory;
        break;
      case Instruction::SEGMENT_GRADIENT:
        buffers.segment_gradient = memory;
        break;
      case Instruction::RECOMPUTED:
        buffers.recomputed = memory;
        break;
      case Instruction::WEIGHTS:
        AddTo(buffers.parameters, call, buffer, memory);
        break;
      case Instruction::TIED_WEIGHTS:
        AddTo(buffers.tied_parameters, call, buffer, memory);
        break;
      case Instruction::WEIGHT_GRADIENTS:
        AddTo(buffers.parameter_gradients, call, buffer, memory);
        break;
      case Instruction::TIED_GRADIENTS:
        AddTo(buffers.tied_parameter_gradients, call, buffer, memory);
        break;
      case Instruction::TOTALS:
        buffers.scalars = reinterpret_cast<double*>(memory);
        break;
      default:
        CHECK(false) << InstructionWords(call.instruction) << " has a "
                     << Instruction::Part_Name(operand.part());
    }
  }
  return buffers;
}

absl::StatusOr<int64_t> TargetsThatCount(const Call& call) {
  RankState& state = call.state;
  const JobSpec& job = state.plan->job();
  const int64_t samples = SamplesOfIsland(job);
  const int64_t before = IslandOf(state.plan->mesh(), state.rank()) * samples;
  return state.targets.Of(job, state.data.has_value() ? &*state.data : nullptr,
                          SamplesBefore(call) + before);
}

absl::StatusOr<MicroBatchContext> ContextOf(const Call& call) {
  const RankState& state = call.state;
  const Derived& derived = state.plan->derived();
  const ReplicaShare share =
      ShareOf(derived, state.step.training ? Program::TRAIN : Program::VALIDATE,
              state.data_index());
  int64_t targets = TokensOfIsland(*state.plan);
  if (state.step.training) {
    ASSIGN_OR_RETURN(targets, TargetsThatCount(call));
  }
  const double loss_factor = state.loss_scale.factor();
  return MicroBatchContext{
      .step = StepOf(call),
      .first_sample = (share.first + call.instruction.micro_batch()) *
                      MicroBatchSequences(*state.plan),
      .training = state.step.training,
      .gradient_scale = loss_factor / static_cast<double>(targets),
      .token_scale =
          loss_factor / static_cast<double>(TokensOfIsland(*state.plan)),
      .gradients_type = state.TypeOfGradients(call.instruction.unit()),
      .gradients_are_zero = AddsToZeros(call),
      .segment = call.instruction.segment(),
  };
}

}  // namespace troupe
