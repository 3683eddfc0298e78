// Writes operands of a program's instructions, and declares the buffers that
// they name. What declare_buffers builds on.
#ifndef TROUPE_SCHEDULER_PASSES_OPERAND_WRITER_H_
#define TROUPE_SCHEDULER_PASSES_OPERAND_WRITER_H_

#include <cstdint>
#include <map>
#include <set>

#include "proto/plan.pb.h"
#include "proto/plan/sums.h"
#include "proto/program.pb.h"
#include "scheduler/passes/named_buffers.h"

namespace troupe {

// What holds for all programs of a role.
struct RoleValues {
  std::map<int, int> versions;  // of a unit's parameters, if several
  std::set<Value> carried;
  // How many steps before its own those are whose scalars TRAIN sums.
  int report_lag = 0;
};

// Of a buffer.
struct BufferRange {
  int64_t offset = 0;
  int64_t bytes = 0;
};

class OperandWriter {
 public:
  struct Parts {
    const Plan& plan;
    const Role& role;
    const RoleValues& values;
  };
  // Borrows all.
  OperandWriter(const Parts& parts, Program& program);

  // Operands are added to this one from now on.
  void Begin(Instruction& instruction) { at_ = &instruction; }

  // Whether the buffer has bytes; else there is no operand.
  bool UseIfAny(Instruction::Part part, const Value& value,
                Instruction::Access access);
  void Use(Instruction::Part part, const Value& value,
           Instruction::Access access) {
    UseIfAny(part, value, access);
  }
  void Use(Instruction::Part part, Buffer::Kind kind, int unit, int micro_batch,
           Instruction::Access access) {
    Use(part, Value{kind, unit, micro_batch}, access);
  }
  void UseSum(const SumPlace& sum, Instruction::Access access);
  void UseVersion(Instruction::Part part, int unit, int offset,
                  Instruction::Access access);
  // What rests of a unit's trained weights in f32, and the optimizer's states;
  // or of its newest weights, as the model computes with them.
  void ReadTrained(int unit);
  void ReadNewest(int unit);
  // Weights and states, by one of the optimizers.
  void ChangeTrained(int unit);
  bool Add(const BufferName& name, Instruction::Part part,
           Instruction::Access access);
  // The last operand is only these bytes of its buffer.
  void NarrowTo(const BufferRange& range);

  int Versions(int unit) const;
  // TRAIN of step s writes version s; so at its beginning version s - 1 is the
  // newest, in all other programs of that step version s.
  int NewestOffset(int unit) const;

  // The values that were used at several offsets so far.
  std::set<Value> Carried() const { return buffers_.AtSeveralOffsets(); }

 protected:
  const Instruction& instruction() const { return *at_; }
  // The last operand, and its buffer's bytes.
  Instruction::Operand& at() {
    return *at_->mutable_operands(at_->operands_size() - 1);
  }
  int64_t BytesOfLast() { return program_.buffers(at().buffer()).bytes(); }

  const Plan& plan_;
  const Role& role_;
  Program& program_;

 private:
  int OffsetOf(Buffer::Kind kind) const;

  const RoleValues& values_;
  NamedBuffers buffers_;
  Instruction* at_ = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_OPERAND_WRITER_H_
