#include "proto/plan/group_staging.h"

#include <algorithm>

#include "proto/plan/at_rest.h"
#include "proto/plan/groups.h"
#include "proto/plan/meeting.h"
#include "proto/plan/operand.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/reduced_range.h"
#include "proto/plan/roles.h"

namespace troupe {
namespace {

// The bytes of all operands that are this part.
int64_t OperandBytes(const Program& program, const Instruction& instruction,
                     Instruction::Part part) {
  int64_t bytes = 0;
  for (const Instruction::Operand& operand : instruction.operands()) {
    if (operand.part() != part) continue;
    const BytesUsed used = BytesOf(operand, program.buffers(operand.buffer()));
    bytes += used.end - used.begin;
  }
  return bytes;
}

// In one buffer, where the operation is one of these.
bool StagesBoth(const Instruction& instruction) {
  if (instruction.kind() == Instruction::MIRROR) return true;
  const Collective collective = instruction.exchange().collective();
  return instruction.kind() == Instruction::EXCHANGE &&
         (collective == ALL_TO_ALL || collective == SHIFT);
}

// Whole lines of what is staged behind one another.
int64_t StagedBytes(int64_t bytes) {
  return (bytes + kStagedAlignment - 1) / kStagedAlignment * kStagedAlignment;
}

int64_t ExchangedBytes(const Program& program, const Instruction& instruction) {
  if (instruction.exchange().collective() == SLICE) return 0;
  const int64_t from = OperandBytes(program, instruction, Instruction::FROM);
  const int64_t to = OperandBytes(program, instruction, Instruction::TO);
  if (!StagesBoth(instruction)) return std::max(from, to);
  return StagedBytes(from) + to;
}

// Of the rank of the role that has most of them.
int64_t ReducedElements(const Plan& plan, const Role& role,
                        const Instruction& instruction) {
  int64_t elements = 0;
  for (int i = 0; i < std::max(1, instruction.unit_count()); ++i) {
    const int unit = instruction.unit() + i;
    const Stretch stretch =
        StretchWith(plan, *FindPlacement(role, unit), instruction.part());
    elements +=
        std::min(ReducedRange(plan.units(unit), instruction).size(),
                 LargestAtRest(plan, stretch, FirstRankOf(plan.mesh(), role)));
  }
  return elements;
}

// Stretches that are dealt over the same ranks move one after the other.
int64_t MovedAtOnce(const Plan& plan, const Role& role,
                    const Instruction& instruction, DealtParts of) {
  int64_t elements = 0;
  const Placement& placement = *FindPlacement(role, instruction.unit());
  for (const Stretch& stretch :
       StretchesWith(plan, placement, instruction.part(), of)) {
    elements = std::max(elements, stretch.all.size());
  }
  return elements;
}

int64_t LargestOperandBytes(const Program& program,
                            const Instruction& instruction) {
  int64_t most = 0;
  for (const Instruction::Operand& operand : instruction.operands()) {
    most = std::max(most, program.buffers(operand.buffer()).bytes());
  }
  return most;
}

int64_t OperationBytes(const Plan& plan, const Role& role,
                       const Program& program, const Instruction& instruction) {
  const Unit& unit = instruction.has_unit() ? plan.units(instruction.unit())
                                            : Unit::default_instance();
  const int64_t gradient_bytes = BytesOfElement(GradientsType(unit));
  switch (instruction.kind()) {
    case Instruction::REDUCE_GRADS:
      return ReducedElements(plan, role, instruction) * gradient_bytes;
    case Instruction::SCATTER_GRADS:
      return MovedAtOnce(plan, role, instruction, DealtParts::kTrained) *
             gradient_bytes;
    case Instruction::GATHER_PARAMETERS:
      return MovedAtOnce(plan, role, instruction, DealtParts::kAll) *
             BytesOfElement(ParametersType(unit));
    // A rank sends or receives.
    case Instruction::PUSH:
      return StagedBytes(
          OperandBytes(program, instruction, Instruction::WEIGHT_GRADIENTS) +
          OperandBytes(program, instruction, Instruction::PUSHED));
    case Instruction::PULL:
      return StagedBytes(
          OperandBytes(program, instruction, Instruction::WEIGHTS) +
          OperandBytes(program, instruction, Instruction::SLICE));
    // Unit after unit.
    case Instruction::CLAIM:
    case Instruction::DELIVER:
    case Instruction::ADMIT:
      return LargestOperandBytes(program, instruction);
    case Instruction::REDUCE_SCALARS:
      return OperandBytes(program, instruction, Instruction::TOTALS);
    case Instruction::OUTER_REDUCE:
      return OperandBytes(program, instruction, Instruction::CHANGE);
    case Instruction::EXCHANGE:
    case Instruction::MIRROR:
      return ExchangedBytes(program, instruction);
    case Instruction::SEND:
    case Instruction::RECV:
      return OperandBytes(program, instruction, Instruction::MOVED);
    default:
      return 0;
  }
}

bool AnyIsStaged(const Group& group) {
  return std::any_of(
      group.carriers().begin(), group.carriers().end(),
      [](const Group::Carrier& carrier) { return carrier.staged(); });
}

}  // namespace

int64_t LargestOperationBytes(const Plan& plan, const Role& role, int group) {
  int64_t most = 0;
  for (const Program& program : role.programs()) {
    for (const Instruction& instruction : program.instructions()) {
      const bool meets =
          Meets(instruction.kind()) || IsTurn(instruction.kind());
      if (!meets || instruction.group() != group) continue;
      most = std::max(most, OperationBytes(plan, role, program, instruction));
    }
  }
  return most;
}

MemoryItem GroupStagingItem(int64_t bytes) {
  MemoryItem item;
  item.set_tier(HOST);
  item.set_item(kGroupStagingItem);
  item.set_bytes(bytes);
  return item;
}

GroupStaging::GroupStaging(const Plan& plan, const Groups& groups)
    : plan_(plan), groups_(groups) {
  for (int g = 0; g < groups.size(); ++g) {
    if (AnyIsStaged(groups[g])) staged_.push_back(g);
  }
}

const std::vector<GroupStaging::Use>& GroupStaging::UsesOf(const Role& role) {
  const auto [it, is_new] = uses_.try_emplace(&role);
  if (!is_new) return it->second;
  for (const int group : staged_) {
    const int64_t bytes = LargestOperationBytes(plan_, role, group);
    if (bytes > 0) it->second.push_back({.group = group, .bytes = bytes});
  }
  return it->second;
}

int64_t GroupStaging::BytesOf(const Role& role, int rank) {
  int64_t bytes = 0;
  for (const Use& use : UsesOf(role)) {
    const Group& group = groups_[use.group];
    const int number = GroupNumber(plan_.mesh(), group, rank);
    if (number >= 0 && CarrierOf(group, number).staged()) bytes += use.bytes;
  }
  return bytes;
}

}  // namespace troupe
