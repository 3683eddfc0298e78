#include "scheduler/passes/declare_buffers.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "proto/base/check.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/precision.h"
#include "scheduler/passes/buffer_bytes.h"

namespace troupe {
namespace {

constexpr int kNone = -1;

// A value in memory: kind, unit, micro-batch.
using Value = std::tuple<Buffer::Kind, int, int>;

// What holds for all programs of a rank.
struct RankValues {
  std::map<int, int> versions;  // of a unit's parameters, if several
  std::set<Value> carried;
};

// Adds to one program the buffers that its instructions name, once each.
class Declaration {
 public:
  Declaration(const Plan& plan, const RankValues& values, Program& program)
      : plan_(plan), values_(values), program_(program) {}

  void Run() {
    for (const Instruction& instruction : program_.instructions()) {
      if (IsGradientSend(instruction)) {
        unsent_.insert({instruction.unit(), instruction.micro_batch()});
      }
    }
    for (Instruction& instruction : *program_.mutable_instructions()) {
      at_ = &instruction;
      Declare(instruction);
      if (instruction.lane() == COMPUTE) {
        Use(Instruction::SCRATCH, Buffer::WORKSPACE, kNone, kNone,
            Instruction::WRITE);
      }
    }
  }

  // After Run: the values that are used at several offsets.
  std::set<Value> Carried() const {
    std::map<Value, int> offsets;
    for (const auto& [name, index] : indices_) offsets[name.first] += 1;
    std::set<Value> carried;
    for (const auto& [value, count] : offsets) {
      if (count > 1) carried.insert(value);
    }
    return carried;
  }

 private:
  using Name = std::pair<Value, int>;  // and its copy's offset

  void Declare(const Instruction& instruction) {
    const int u = instruction.unit();
    const int m = instruction.micro_batch();
    switch (instruction.kind()) {
      case Instruction::LOAD_BATCH:
        return Use(Instruction::BATCH, Buffer::BATCH, kNone, m,
                   Instruction::WRITE);
      case Instruction::FORWARD:
        return Forward(u, m);
      case Instruction::BACKWARD_INPUT:
        return BackwardInput(u, m);
      case Instruction::BACKWARD_WEIGHT:
        return BackwardWeight(u, m);
      case Instruction::REDUCE_GRADS:
        for (int i = 0; i < std::max(1, instruction.unit_count()); ++i) {
          Use(Instruction::WEIGHT_GRADIENTS, Buffer::PARAMETER_GRADIENTS, u + i,
              kNone, Instruction::ADD);
        }
        return;
      case Instruction::GRAD_NORM:
        Use(Instruction::WEIGHT_GRADIENTS, Buffer::PARAMETER_GRADIENTS, u,
            kNone, Instruction::READ);
        return UseTotals(Instruction::ADD);
      case Instruction::REDUCE_SCALARS:
        return UseTotals(Instruction::ADD);
      case Instruction::STEP:
        return Step(u);
      case Instruction::SNAPSHOT:
        return Snapshot(u);
      case Instruction::SEND:
        if (IsGradientSend(instruction)) unsent_.erase({u, m});
        return Use(Instruction::MOVED, Moved(instruction), u, m,
                   Instruction::READ);
      case Instruction::RECV:
        return Use(Instruction::MOVED, Moved(instruction), u, m,
                   Instruction::WRITE);
      default:
        CHECK(false) << "no buffers known for "
                     << Instruction::Kind_Name(instruction.kind());
    }
  }

  static bool IsGradientSend(const Instruction& instruction) {
    return instruction.kind() == Instruction::SEND &&
           instruction.lane() == GRADIENTS;
  }

  static Buffer::Kind Moved(const Instruction& transfer) {
    return transfer.lane() == ACTIVATIONS ? Buffer::ACTIVATION
                                          : Buffer::GRADIENT;
  }

  void Forward(int u, int m) {
    if (u > 0)
      Use(Instruction::INPUT, Buffer::ACTIVATION, u - 1, m, Instruction::READ);
    if (Is(u, Unit::EMBEDDING) || Is(u, Unit::HEAD)) {
      Use(Instruction::BATCH, Buffer::BATCH, kNone, m, Instruction::READ);
    }
    ReadParameters(u);
    Use(Instruction::OUTPUT, Buffer::ACTIVATION, u, m, Instruction::WRITE);
    Use(Instruction::SAVED, Buffer::STASH, u, m, Instruction::WRITE);
    if (u + 1 == plan_.units_size()) UseTotals(Instruction::ADD);
  }

  // Units keep what they read of a micro-batch, synthetic ones what they made.
  void ReadKeptActivation(int u, int m) {
    if (Is(u, Unit::SYNTHETIC)) {
      Use(Instruction::OUTPUT, Buffer::ACTIVATION, u, m, Instruction::READ);
    } else if (u > 0) {
      Use(Instruction::INPUT, Buffer::ACTIVATION, u - 1, m, Instruction::READ);
    }
  }

  void BackwardInput(int u, int m) {
    Use(Instruction::OUTPUT_GRADIENT, Buffer::GRADIENT, u, m,
        Instruction::READ);
    ReadKeptActivation(u, m);
    Use(Instruction::SAVED, Buffer::STASH, u, m, Instruction::READ);
    ReadParameters(u);
    if (u > 0) {
      Use(Instruction::INPUT_GRADIENT, Buffer::GRADIENT, u - 1, m,
          Instruction::WRITE);
    }
    Use(Instruction::SAVED_GRADIENTS, Buffer::WEIGHT_STASH, u, m,
        Instruction::WRITE);
  }

  void BackwardWeight(int u, int m) {
    Use(Instruction::OUTPUT_GRADIENT, Buffer::GRADIENT, u, m,
        Instruction::READ);
    ReadKeptActivation(u, m);
    Use(Instruction::SAVED, Buffer::STASH, u, m, Instruction::READ);
    Use(Instruction::SAVED_GRADIENTS, Buffer::WEIGHT_STASH, u, m,
        Instruction::READ);
    if (Is(u, Unit::EMBEDDING)) {
      Use(Instruction::BATCH, Buffer::BATCH, kNone, m, Instruction::READ);
    }
    for (const int owner : GradientUnits(plan_, u)) {
      const bool first = summed_.insert(owner).second;
      Use(owner == u ? Instruction::WEIGHT_GRADIENTS
                     : Instruction::TIED_GRADIENTS,
          Buffer::PARAMETER_GRADIENTS, owner, kNone,
          first ? Instruction::ADD_TO_ZEROS : Instruction::ADD);
    }
    // Of one backward pass, the SEND stands behind the weight's half: what it
    // carries is the pass's, and goes when that is done.
    if (u > 0 && unsent_.count({u - 1, m}) > 0) {
      Use(Instruction::INPUT_GRADIENT, Buffer::GRADIENT, u - 1, m,
          Instruction::ADD);
    }
  }

  void Step(int u) {
    // Leaves them zero.
    Use(Instruction::WEIGHT_GRADIENTS, Buffer::PARAMETER_GRADIENTS, u, kNone,
        Instruction::ADD);
    // The norm by which gradients are clipped.
    if (plan_.job().training().gradient_clipping() > 0) {
      UseTotals(Instruction::READ);
    }
    Use(Instruction::MOMENTS, Buffer::OPTIMIZER_STATE, u, kNone,
        Instruction::ADD);
    if (HasMasterWeights(plan_.job().training())) {
      Use(Instruction::MASTER, Buffer::MASTER_WEIGHTS, u, kNone,
          Instruction::ADD);
    }
    if (Versions(u) > 1) {
      UseVersion(Instruction::OLD_WEIGHTS, u, NewestOffset(u),
                 Instruction::READ);
    }
    UseVersion(Instruction::WEIGHTS, u, 0, Instruction::WRITE);
  }

  void Snapshot(int u) {
    if (HasMasterWeights(plan_.job().training())) {
      Use(Instruction::MASTER, Buffer::MASTER_WEIGHTS, u, kNone,
          Instruction::READ);
    } else {
      UseVersion(Instruction::WEIGHTS, u, NewestOffset(u), Instruction::READ);
    }
    Use(Instruction::MOMENTS, Buffer::OPTIMIZER_STATE, u, kNone,
        Instruction::READ);
    if (plan_.job().checkpoint().background()) {
      Use(Instruction::COPY, Buffer::SNAPSHOT_COPY, u, kNone,
          Instruction::WRITE);
    }
  }

  int Versions(int u) const {
    const auto found = values_.versions.find(u);
    return found == values_.versions.end() ? 1 : found->second;
  }

  // TRAIN of step s writes version s; so at its beginning version s - 1 is the
  // newest, in all other programs of that step version s.
  int NewestOffset(int u) const {
    return Versions(u) > 1 && program_.kind() == Program::TRAIN ? -1 : 0;
  }

  void ReadParameters(int u) {
    for (const int owner : GradientUnits(plan_, u)) {
      const int age = Versions(owner) > 1 ? at_->weight_version() : 0;
      UseVersion(owner == u ? Instruction::WEIGHTS : Instruction::TIED_WEIGHTS,
                 owner, NewestOffset(owner) - age, Instruction::READ);
    }
  }

  void UseTotals(Instruction::Access access) {
    Use(Instruction::TOTALS, Buffer::SCALARS, kNone, kNone, access);
  }
  void UseVersion(Instruction::Part part, int unit, int offset,
                  Instruction::Access access) {
    Add({{Buffer::PARAMETERS, unit, kNone}, offset}, part, access);
  }
  void Use(Instruction::Part part, Buffer::Kind kind, int unit, int micro_batch,
           Instruction::Access access) {
    Add({{kind, unit, micro_batch}, OffsetOf(kind)}, part, access);
  }
  void Add(const Name& name, Instruction::Part part,
           Instruction::Access access) {
    const int index = Index(name);
    if (index < 0) return;
    Instruction::Operand& operand = *at_->add_operands();
    operand.set_part(part);
    operand.set_buffer(index);
    operand.set_access(access);
  }

  // What belongs to a step has a copy for each that is under way. Scalars of a
  // validation take that of the step which comes next.
  int OffsetOf(Buffer::Kind kind) const {
    const bool validates = program_.kind() == Program::VALIDATE;
    if (kind == Buffer::SCALARS) return validates ? 1 : at_->ahead();
    return IsResident(kind) ? 0 : at_->ahead();
  }

  // Of the buffer, declared where it is new; negative: it has no bytes.
  int Index(const Name& name) {
    const auto [found, is_new] = indices_.try_emplace(name, kNone);
    if (!is_new) return found->second;
    const auto& [value, offset] = name;
    const auto [kind, unit, micro_batch] = value;
    const int64_t bytes = BufferBytes(plan_, kind, unit);
    if (bytes == 0) return kNone;
    Buffer& buffer = *program_.add_buffers();
    buffer.set_kind(kind);
    if (unit != kNone) buffer.set_unit(unit);
    if (micro_batch != kNone) buffer.set_micro_batch(micro_batch);
    buffer.set_bytes(bytes);
    const bool trains =
        program_.kind() == Program::TRAIN || program_.kind() == Program::FILL;
    buffer.set_carried(trains && values_.carried.count(value) > 0);
    if (HasOwnSlot(buffer)) buffer.set_copy_offset(offset);
    return found->second = program_.buffers_size() - 1;
  }

  bool Is(int u, Unit::Kind kind) const {
    return plan_.units(u).kind() == kind;
  }

  const Plan& plan_;
  const RankValues& values_;
  Program& program_;
  Instruction* at_ = nullptr;
  // Gradients that a later instruction sends: unit and micro-batch.
  std::set<std::pair<int, int>> unsent_;
  std::set<int> summed_;  // units whose gradients hold something
  std::map<Name, int> indices_;
};

// The versions that TRAIN uses, and what it carries to its next runs.
RankValues ValuesOf(const Plan& plan, const Program& train) {
  RankValues values;
  for (const Instruction& instruction : train.instructions()) {
    // Backward-weight needs gradients and activations only.
    if (instruction.weight_version() == 0 ||
        instruction.kind() == Instruction::BACKWARD_WEIGHT) {
      continue;
    }
    for (const int owner : GradientUnits(plan, instruction.unit())) {
      int& versions = values.versions[owner];
      versions = std::max(versions, 1 + instruction.weight_version());
    }
  }
  Program trial = train;
  Declaration declaration(plan, values, trial);
  declaration.Run();
  for (const Value& value : declaration.Carried()) {
    if (!IsResident(std::get<0>(value))) values.carried.insert(value);
  }
  return values;
}

}  // namespace

void DeclareBuffers(Draft& draft) {
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    const RankValues values =
        ValuesOf(draft.plan, *FindProgram(rank, Program::TRAIN));
    for (Program& program : *rank.mutable_programs()) {
      Declaration(draft.plan, values, program).Run();
    }
  }
}

}  // namespace troupe
