#include "scheduler/passes/operand_writer.h"

#include "proto/base/check.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/precision.h"
#include "proto/plan/trained.h"

namespace troupe {

OperandWriter::OperandWriter(const Parts& parts, Program& program)
    : plan_(parts.plan),
      role_(parts.role),
      program_(program),
      values_(parts.values),
      buffers_(plan_, role_, values_.carried, program) {}

bool OperandWriter::UseIfAny(Instruction::Part part, const Value& value,
                             Instruction::Access access) {
  return Add({value, OffsetOf(value.kind)}, part, access);
}

void OperandWriter::UseSum(const SumPlace& sum, Instruction::Access access) {
  Use(Instruction::TOTALS, Buffer::SCALARS, kNone, kNone, access);
  NarrowTo({.offset = sum.begin_bytes(),
            .bytes = sum.end_bytes() - sum.begin_bytes()});
}

void OperandWriter::UseVersion(Instruction::Part part, int unit, int offset,
                               Instruction::Access access) {
  Add({{Buffer::PARAMETERS, unit, kNone}, offset}, part, access);
}

void OperandWriter::ReadNewest(int unit) {
  UseVersion(Instruction::WEIGHTS, unit, NewestOffset(unit), Instruction::READ);
}

void OperandWriter::ReadTrained(int unit) {
  if (HasMasterWeights(plan_.job().training())) {
    Use(Instruction::MASTER, Buffer::MASTER_WEIGHTS, unit, kNone,
        Instruction::READ);
  } else {
    ReadNewest(unit);
  }
  Use(Instruction::MOMENTS, Buffer::OPTIMIZER_STATE, unit, kNone,
      Instruction::READ);
}

void OperandWriter::ChangeTrained(int unit) {
  Use(Instruction::MOMENTS, Buffer::OPTIMIZER_STATE, unit, kNone,
      Instruction::ADD);
  const bool master = HasMasterWeights(plan_.job().training());
  if (master) {
    Use(Instruction::MASTER, Buffer::MASTER_WEIGHTS, unit, kNone,
        Instruction::ADD);
  }
  const bool versions = Versions(unit) > 1;
  if (versions) {
    UseVersion(Instruction::OLD_WEIGHTS, unit, NewestOffset(unit),
               Instruction::READ);
  }
  // Made of others, or of themselves; but for what is frozen.
  const bool all = FrozenRange(plan_.units(unit)).size() == 0;
  UseVersion(
      Instruction::WEIGHTS, unit, 0,
      (master && all) || versions ? Instruction::WRITE : Instruction::ADD);
}

bool OperandWriter::Add(const BufferName& name, Instruction::Part part,
                        Instruction::Access access) {
  const int index = buffers_.Index(name);
  if (index < 0) return false;
  Instruction::Operand& operand = *at_->add_operands();
  operand.set_part(part);
  operand.set_buffer(index);
  operand.set_access(access);
  return true;
}

void OperandWriter::NarrowTo(const BufferRange& range) {
  CHECK_GT(range.bytes, 0) << "an operand of nothing";
  at().set_offset(range.offset);
  at().set_bytes(range.bytes);
}

int OperandWriter::Versions(int unit) const {
  const auto found = values_.versions.find(unit);
  return found == values_.versions.end() ? 1 : found->second;
}

int OperandWriter::NewestOffset(int unit) const {
  return Versions(unit) > 1 && program_.kind() == Program::TRAIN ? -1 : 0;
}

// What belongs to a step has a copy for each that is under way. Scalars of a
// validation take that of the step which TRAIN has just summed.
int OperandWriter::OffsetOf(Buffer::Kind kind) const {
  const bool validates = program_.kind() == Program::VALIDATE;
  if (kind == Buffer::SCALARS && validates) return -values_.report_lag;
  return IsResident(kind) && kind != Buffer::SCALARS ? 0 : at_->ahead();
}

}  // namespace troupe
