#include "worker/instructions/call.h"

#include "proto/base/check.h"
#include "proto/plan/program_text.h"

namespace troupe {
namespace {

const Buffer* FindAmong(
    const Call& call,
    const google::protobuf::RepeatedField<google::protobuf::int32>& indices,
    Buffer::Kind kind, absl::optional<int> unit) {
  for (const int index : indices) {
    const Buffer& buffer = call.program.buffers(index);
    if (buffer.kind() != kind || buffer.has_unit() != unit.has_value()) {
      continue;
    }
    if (!unit.has_value() || buffer.unit() == *unit) return &buffer;
  }
  return nullptr;
}

bool IsTiedTo(const Plan& plan, int unit, int owner) {
  for (const Unit::Tied& tied : plan.units(unit).tied()) {
    if (tied.unit() == owner) return true;
  }
  return false;
}

char* MemoryOf(const Call& call, const Buffer& buffer) {
  return call.state.memory.At(buffer, call.state.step.step);
}

// Whether the call is the program's first to add to its parameter gradients,
// which units that are tied share.
bool AddsFirst(const Call& call) {
  if (call.instruction.kind() != Instruction::BACKWARD_WEIGHT) return false;
  const Plan& plan = *call.state.plan;
  const int unit = call.instruction.unit();
  for (const Instruction& other : call.program.instructions()) {
    if (other.kind() != Instruction::BACKWARD_WEIGHT) continue;
    if (other.unit() == unit || IsTiedTo(plan, unit, other.unit()) ||
        IsTiedTo(plan, other.unit(), unit)) {
      return &other == &call.instruction;
    }
  }
  return false;
}

}  // namespace

const Buffer* FindOperand(const Call& call, Buffer::Kind kind,
                          absl::optional<int> unit) {
  const Buffer* read = FindAmong(call, call.instruction.reads(), kind, unit);
  if (read != nullptr) return read;
  return FindAmong(call, call.instruction.writes(), kind, unit);
}

char* Operand(const Call& call, Buffer::Kind kind, absl::optional<int> unit) {
  const Buffer* buffer = FindOperand(call, kind, unit);
  return buffer == nullptr ? nullptr : MemoryOf(call, *buffer);
}

char* NeedOperand(const Call& call, Buffer::Kind kind,
                  absl::optional<int> unit) {
  const Buffer* buffer = FindOperand(call, kind, unit);
  CHECK(buffer != nullptr) << InstructionWords(call.instruction) << " has no "
                           << Buffer::Kind_Name(kind) << " of unit "
                           << unit.value_or(-1);
  return MemoryOf(call, *buffer);
}

char* NeedWritten(const Call& call, Buffer::Kind kind,
                  absl::optional<int> unit) {
  const Buffer* buffer = FindAmong(call, call.instruction.writes(), kind, unit);
  CHECK(buffer != nullptr) << InstructionWords(call.instruction)
                           << " writes no " << Buffer::Kind_Name(kind);
  return MemoryOf(call, *buffer);
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
  const int unit = call.instruction.unit();
  UnitBuffers buffers = {
      .batch = reinterpret_cast<const int32_t*>(Operand(call, Buffer::BATCH)),
      .input = Operand(call, Buffer::ACTIVATION, unit - 1),
      .output = Operand(call, Buffer::ACTIVATION, unit),
      .stash = Operand(call, Buffer::STASH, unit),
      .output_gradient = Operand(call, Buffer::GRADIENT, unit),
      .input_gradient = Operand(call, Buffer::GRADIENT, unit - 1),
      .weight_stash = Operand(call, Buffer::WEIGHT_STASH, unit),
      .workspace = Operand(call, Buffer::WORKSPACE),
      .parameters = Operand(call, Buffer::PARAMETERS, unit),
      .parameter_gradients = Operand(call, Buffer::PARAMETER_GRADIENTS, unit),
      .scalars = reinterpret_cast<double*>(Operand(call, Buffer::SCALARS)),
  };
  for (const Unit::Tied& tied : call.state.plan->units(unit).tied()) {
    buffers.tied_parameters = Operand(call, Buffer::PARAMETERS, tied.unit());
    buffers.tied_parameter_gradients =
        Operand(call, Buffer::PARAMETER_GRADIENTS, tied.unit());
  }
  return buffers;
}

MicroBatchContext ContextOf(const Call& call) {
  const RankState& state = call.state;
  const Derived& derived = state.plan->derived();
  const TrainingSpec& training = state.plan->job().training();
  const int64_t micro_batches = derived.micro_batches();
  return {
      .step = StepOf(call),
      .first_sample = (state.data_index() * micro_batches +
                       call.instruction.micro_batch()) *
                      training.micro_batch_size(),
      .training = state.step.training,
      .gradient_scale = 1.0 / static_cast<double>(derived.tokens_per_step()),
      .gradients_are_zero = AddsFirst(call),
  };
}

}  // namespace troupe
