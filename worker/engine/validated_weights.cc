#include "worker/engine/validated_weights.h"

#include <tuple>

#include "absl/types/optional.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/find_program.h"
#include "worker/instructions/call.h"
#include "worker/instructions/instructions.h"

namespace troupe {
namespace {

const Program& Validation(const RankState& state) {
  const Program* const validate = FindProgram(state.role(), Program::VALIDATE);
  CHECK(validate != nullptr) << "a sample of a job that validates nothing";
  return *validate;
}

bool Has(const Instruction& instruction, Instruction::Part part) {
  for (const Instruction::Operand& operand : instruction.operands()) {
    if (operand.part() == part) return true;
  }
  return false;
}

// Whether what is in it stays when a program ends.
bool Rests(const Buffer& buffer) {
  return buffer.carried() ||
         (buffer.kind() == Buffer::PARAMETERS && buffer.copy() == 0);
}

}  // namespace

ValidatedWeights::ValidatedWeights(RankState& state)
    : state_(state), validate_(Validation(state)) {
  std::map<int, int> first;  // micro-batch that a unit sees, by unit
  for (int i = 0; i < validate_.instructions_size(); ++i) {
    const Instruction& forward = At(i);
    if (forward.kind() != Instruction::FORWARD) continue;
    const int unit = forward.unit();
    if (first.emplace(unit, forward.micro_batch()).first->second !=
        forward.micro_batch()) {
      continue;
    }
    Use& use = uses_[unit];
    if (use.own < 0 && Has(forward, Instruction::WEIGHTS)) {
      use.own = i;
      AddBrings(i, Instruction::WEIGHTS, use.brings);
    }
    if (use.tied < 0 && Has(forward, Instruction::TIED_WEIGHTS)) {
      use.tied = i;
      AddBrings(i, Instruction::TIED_WEIGHTS, use.brings);
    }
  }
}

void ValidatedWeights::AddBrings(int reader, Instruction::Part part,
                                 std::set<int>& brings) {
  for (const Instruction::Operand& operand : At(reader).operands()) {
    if (operand.part() == part) AddWriters(operand.buffer(), reader, brings);
  }
}

void ValidatedWeights::AddWriters(int buffer, int before,
                                  std::set<int>& brings) {
  if (Rests(validate_.buffers(buffer))) return;
  // Of those that do the same, for earlier uses, the last one.
  using Same = std::tuple<Instruction::Kind, int, int>;
  std::map<Same, int> writers;
  for (int i = 0; i < before; ++i) {
    const Instruction& instruction = At(i);
    if (instruction.kind() != Instruction::GATHER_PARAMETERS &&
        instruction.kind() != Instruction::FETCH) {
      continue;
    }
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (operand.buffer() != buffer || operand.access() == Instruction::READ) {
        continue;
      }
      writers[{instruction.kind(), instruction.unit(), instruction.part()}] = i;
    }
  }
  for (const auto& [same, writer] : writers) {
    if (!brings.insert(writer).second) continue;
    for (const Instruction::Operand& operand : At(writer).operands()) {
      if (operand.buffer() == buffer) continue;
      AddWriters(operand.buffer(), writer, brings);
    }
  }
}

UnitWeights ValidatedWeights::Of(int unit) const {
  const auto found = uses_.find(unit);
  CHECK(found != uses_.end()) << "unit " << unit << " is not validated";
  const Use& use = found->second;
  UnitWeights weights;
  if (use.own >= 0) {
    weights.own = BuffersOf({state_, validate_, At(use.own)}).parameters;
  }
  if (use.tied >= 0) {
    weights.tied = BuffersOf({state_, validate_, At(use.tied)}).tied_parameters;
  }
  return weights;
}

absl::Status ValidatedWeights::Bring(int unit) const {
  for (const int index : uses_.at(unit).brings) {
    RETURN_IF_ERROR(RunInstruction({state_, validate_, At(index)}));
  }
  return absl::OkStatus();
}

absl::Status ValidatedWeights::Outcome(const absl::Status& queue) const {
  std::set<int> groups;
  for (const auto& [unit, use] : uses_) {
    for (const int index : use.brings) {
      if (!At(index).has_group() || !groups.insert(At(index).group()).second) {
        continue;
      }
      RETURN_IF_ERROR(OutcomeOf({state_, validate_, At(index)}, queue));
    }
  }
  return queue;
}

}  // namespace troupe
