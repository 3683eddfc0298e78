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
      if (instruction.lane() == COMPUTE) Write(Buffer::WORKSPACE);
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
    switch (instruction.kind()) {
      case Instruction::LOAD_BATCH:
        return Write(Buffer::BATCH, kNone, instruction.micro_batch());
      case Instruction::FORWARD:
        return Forward(instruction.unit(), instruction.micro_batch());
      case Instruction::BACKWARD_INPUT:
        return BackwardInput(instruction.unit(), instruction.micro_batch());
      case Instruction::BACKWARD_WEIGHT:
        return BackwardWeight(instruction.unit(), instruction.micro_batch());
      case Instruction::REDUCE_GRADS:
        for (int i = 0; i < std::max(1, instruction.unit_count()); ++i) {
          Update(Buffer::PARAMETER_GRADIENTS, instruction.unit() + i);
        }
        return;
      case Instruction::GRAD_NORM:
        Read(Buffer::PARAMETER_GRADIENTS, instruction.unit());
        return Update(Buffer::SCALARS);
      case Instruction::REDUCE_SCALARS:
        return Update(Buffer::SCALARS);
      case Instruction::STEP:
        return Step(instruction.unit());
      case Instruction::SNAPSHOT:
        return Snapshot(instruction.unit());
      case Instruction::SEND:
        if (IsGradientSend(instruction)) {
          unsent_.erase({instruction.unit(), instruction.micro_batch()});
        }
        return Read(Moved(instruction), instruction.unit(),
                    instruction.micro_batch());
      case Instruction::RECV:
        return Write(Moved(instruction), instruction.unit(),
                     instruction.micro_batch());
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
    if (u > 0) Read(Buffer::ACTIVATION, u - 1, m);
    if (Is(u, Unit::EMBEDDING) || Is(u, Unit::HEAD)) {
      Read(Buffer::BATCH, kNone, m);
    }
    ReadParameters(u);
    Write(Buffer::ACTIVATION, u, m);
    Write(Buffer::STASH, u, m);
    if (u + 1 == plan_.units_size()) Write(Buffer::SCALARS);
  }

  // Units keep what they read of a micro-batch, synthetic ones what they made.
  void ReadKeptActivation(int u, int m) {
    const int kept = Is(u, Unit::SYNTHETIC) ? u : u - 1;
    if (kept >= 0) Read(Buffer::ACTIVATION, kept, m);
  }

  void BackwardInput(int u, int m) {
    Read(Buffer::GRADIENT, u, m);
    ReadKeptActivation(u, m);
    Read(Buffer::STASH, u, m);
    ReadParameters(u);
    if (u > 0) Write(Buffer::GRADIENT, u - 1, m);
    Write(Buffer::WEIGHT_STASH, u, m);
  }

  void BackwardWeight(int u, int m) {
    Read(Buffer::GRADIENT, u, m);
    ReadKeptActivation(u, m);
    Read(Buffer::STASH, u, m);
    Read(Buffer::WEIGHT_STASH, u, m);
    if (Is(u, Unit::EMBEDDING)) Read(Buffer::BATCH, kNone, m);
    for (const int owner : GradientUnits(plan_, u)) {
      Update(Buffer::PARAMETER_GRADIENTS, owner);
    }
    // Of one backward pass, the SEND stands behind the weight's half: what it
    // carries is the pass's, and goes when that is done.
    if (u > 0 && unsent_.count({u - 1, m}) > 0) {
      Update(Buffer::GRADIENT, u - 1, m);
    }
  }

  void Step(int u) {
    Update(Buffer::PARAMETER_GRADIENTS, u);
    // The norm by which gradients are clipped.
    if (plan_.job().training().gradient_clipping() > 0) Read(Buffer::SCALARS);
    Update(Buffer::OPTIMIZER_STATE, u);
    if (HasMasterWeights(plan_.job().training())) {
      Update(Buffer::MASTER_WEIGHTS, u);
    }
    if (Versions(u) > 1) Use(Buffer::PARAMETERS, u, NewestOffset(u), kRead);
    Use(Buffer::PARAMETERS, u, 0, kWrite);
  }

  void Snapshot(int u) {
    if (HasMasterWeights(plan_.job().training())) {
      Read(Buffer::MASTER_WEIGHTS, u);
    } else {
      Use(Buffer::PARAMETERS, u, NewestOffset(u), kRead);
    }
    Read(Buffer::OPTIMIZER_STATE, u);
    if (plan_.job().checkpoint().background()) Write(Buffer::SNAPSHOT_COPY, u);
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
      Use(Buffer::PARAMETERS, owner, NewestOffset(owner) - age, kRead);
    }
  }

  enum Access { kRead, kWrite };

  void Read(Buffer::Kind kind, int unit = kNone, int micro_batch = kNone) {
    Add({{kind, unit, micro_batch}, OffsetOf(kind)}, kRead);
  }
  void Write(Buffer::Kind kind, int unit = kNone, int micro_batch = kNone) {
    Add({{kind, unit, micro_batch}, OffsetOf(kind)}, kWrite);
  }
  void Update(Buffer::Kind kind, int unit = kNone, int micro_batch = kNone) {
    Read(kind, unit, micro_batch);
    Write(kind, unit, micro_batch);
  }
  void Use(Buffer::Kind kind, int unit, int offset, Access access) {
    Add({{kind, unit, kNone}, offset}, access);
  }
  void Add(const Name& name, Access access) {
    const int index = Index(name);
    if (index < 0) return;
    access == kRead ? at_->add_reads(index) : at_->add_writes(index);
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
