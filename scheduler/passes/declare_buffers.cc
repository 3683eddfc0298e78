#include "scheduler/passes/declare_buffers.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "proto/base/check.h"
#include "proto/plan/precision.h"

namespace troupe {
namespace {

// f64: loss, tokens, norm, stop, save.
constexpr int64_t kScalarsBytes = 5 * 8;
constexpr int64_t kBytesOfI32 = 4;

// Adds to one program the buffers that its instructions name, once each.
class Declaration {
 public:
  Declaration(const Plan& plan, Program& program)
      : plan_(plan), program_(program) {}

  void Run() {
    for (Instruction& instruction : *program_.mutable_instructions()) {
      at_ = &instruction;
      Declare(instruction);
      if (instruction.lane() == COMPUTE) Write(Buffer::WORKSPACE);
    }
  }

 private:
  static constexpr int kNone = -1;
  using Name = std::tuple<Buffer::Kind, int, int>;  // kind, unit, micro-batch

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
      default:
        CHECK(false) << "no buffers known for "
                     << Instruction::Kind_Name(instruction.kind());
    }
  }

  void Forward(int u, int m) {
    if (u > 0) Read(Buffer::ACTIVATION, u - 1, m);
    if (IsEmbedding(u) || IsHead(u)) Read(Buffer::BATCH, kNone, m);
    ReadParameters(u);
    Write(Buffer::ACTIVATION, u, m);
    Write(Buffer::STASH, u, m);
    if (IsHead(u)) Write(Buffer::SCALARS);
  }

  void BackwardInput(int u, int m) {
    Read(Buffer::GRADIENT, u, m);
    Read(Buffer::ACTIVATION, u - 1, m);
    Read(Buffer::STASH, u, m);
    ReadParameters(u);
    Write(Buffer::GRADIENT, u - 1, m);
    Write(Buffer::WEIGHT_STASH, u, m);
  }

  void BackwardWeight(int u, int m) {
    Read(Buffer::GRADIENT, u, m);
    if (u > 0) Read(Buffer::ACTIVATION, u - 1, m);
    Read(Buffer::STASH, u, m);
    Read(Buffer::WEIGHT_STASH, u, m);
    if (IsEmbedding(u)) Read(Buffer::BATCH, kNone, m);
    for (const int owner : GradientUnits(plan_, u)) {
      Update(Buffer::PARAMETER_GRADIENTS, owner);
    }
  }

  void Step(int u) {
    Update(Buffer::PARAMETER_GRADIENTS, u);
    Read(Buffer::SCALARS);
    Update(Buffer::OPTIMIZER_STATE, u);
    if (HasMasterWeights(plan_.job().training())) {
      Update(Buffer::MASTER_WEIGHTS, u);
    }
    Write(Buffer::PARAMETERS, u);
  }

  void Snapshot(int u) {
    Read(HasMasterWeights(plan_.job().training()) ? Buffer::MASTER_WEIGHTS
                                                  : Buffer::PARAMETERS,
         u);
    Read(Buffer::OPTIMIZER_STATE, u);
    if (plan_.job().checkpoint().background()) Write(Buffer::SNAPSHOT_COPY, u);
  }

  void ReadParameters(int u) {
    for (const int owner : GradientUnits(plan_, u)) {
      Read(Buffer::PARAMETERS, owner);
    }
  }

  void Read(Buffer::Kind kind, int unit = kNone, int micro_batch = kNone) {
    const int index = Index({kind, unit, micro_batch});
    if (index >= 0) at_->add_reads(index);
  }
  void Write(Buffer::Kind kind, int unit = kNone, int micro_batch = kNone) {
    const int index = Index({kind, unit, micro_batch});
    if (index >= 0) at_->add_writes(index);
  }
  void Update(Buffer::Kind kind, int unit = kNone) {
    Read(kind, unit);
    Write(kind, unit);
  }

  // Of the buffer, declared where it is new; negative: it has no bytes.
  int Index(const Name& name) {
    const auto [found, is_new] = indices_.try_emplace(name, kNone);
    if (!is_new) return found->second;
    const auto [kind, unit, micro_batch] = name;
    const int64_t bytes = BytesOf(kind, unit);
    if (bytes == 0) return kNone;
    Buffer& buffer = *program_.add_buffers();
    buffer.set_kind(kind);
    if (unit != kNone) buffer.set_unit(unit);
    if (micro_batch != kNone) buffer.set_micro_batch(micro_batch);
    buffer.set_bytes(bytes);
    return found->second = program_.buffers_size() - 1;
  }

  int64_t BytesOf(Buffer::Kind kind, int unit) const {
    const TrainingSpec& training = plan_.job().training();
    switch (kind) {
      case Buffer::BATCH:
        return 2 * kBytesOfI32 * training.micro_batch_size() *
               training.sequence_length();
      case Buffer::SCALARS:
        return kScalarsBytes;
      case Buffer::WORKSPACE:
        return WorkspaceBytes();
      case Buffer::ACTIVATION:
      case Buffer::GRADIENT:
        return plan_.units(unit).activation_bytes();
      case Buffer::STASH:
        return plan_.units(unit).stash_bytes();
      case Buffer::WEIGHT_STASH:
        return plan_.units(unit).weight_stash_bytes();
      case Buffer::PARAMETERS:
        return plan_.units(unit).flat_elements() *
               BytesOfElement(ComputeType(training));
      case Buffer::PARAMETER_GRADIENTS:
      case Buffer::MASTER_WEIGHTS:
        return FlatBytes(plan_.units(unit));
      case Buffer::OPTIMIZER_STATE:
        return FlatBytes(plan_.units(unit)) * Moments();
      case Buffer::SNAPSHOT_COPY:
        return FlatBytes(plan_.units(unit)) * (1 + Moments());
      default:
        CHECK(false) << "no size known for " << Buffer::Kind_Name(kind);
        return 0;
    }
  }

  int Moments() const { return OptimizerMoments(plan_.job().optimizer()); }

  int64_t WorkspaceBytes() const {
    int64_t bytes = 0;
    for (const Unit& unit : plan_.units()) {
      bytes = std::max(bytes, unit.workspace_bytes());
    }
    return bytes;
  }

  bool IsEmbedding(int u) const {
    return plan_.units(u).kind() == Unit::EMBEDDING;
  }
  bool IsHead(int u) const { return plan_.units(u).kind() == Unit::HEAD; }

  const Plan& plan_;
  Program& program_;
  Instruction* at_ = nullptr;
  std::map<Name, int> indices_;
};

}  // namespace

void DeclareBuffers(Draft& draft) {
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    for (Program& program : *rank.mutable_programs()) {
      Declaration(draft.plan, program).Run();
    }
  }
}

}  // namespace troupe
