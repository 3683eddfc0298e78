#include "scheduler/passes/declare_buffers.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/batch.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/copies.h"
#include "proto/plan/edges.h"
#include "proto/plan/exchange_places.h"
#include "proto/plan/lanes.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/reduced_range.h"
#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "proto/plan/slices.h"
#include "proto/plan/sums.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/trained.h"
#include "proto/plan/unit_passes.h"
#include "scheduler/passes/buffer_bytes.h"
#include "scheduler/passes/declare_sums.h"
#include "scheduler/passes/operand_writer.h"
#include "scheduler/passes/unit_values.h"
#include "scheduler/passes/writes_into_others.h"
#include "scheduler/tiers/offload.h"

namespace troupe {
namespace {

// The order in which operands are listed.
constexpr UnitMemory kReadOrder[] = {
    UnitMemory::kOutputGradient, UnitMemory::kInput,
    UnitMemory::kOutput,         UnitMemory::kStash,
    UnitMemory::kWeightStash,    UnitMemory::kBatch,
    UnitMemory::kSegmentValues,  UnitMemory::kSegmentGradients,
    UnitMemory::kRecomputed};
constexpr UnitMemory kWriteOrder[] = {
    UnitMemory::kOutput,        UnitMemory::kStash,
    UnitMemory::kInputGradient, UnitMemory::kWeightStash,
    UnitMemory::kSegmentValues, UnitMemory::kSegmentGradients,
    UnitMemory::kRecomputed};

// Adds to one program the buffers that its instructions name, once each.
class Declaration : private OperandWriter {
 public:
  struct Parts {
    const Plan& plan;
    const UnitPasses& passes;
    const Edges& edges;
    const RoleValues& values;
    const Role& role;
  };
  Declaration(const Parts& parts, Program& program)
      : OperandWriter({parts.plan, parts.role, parts.values}, program),
        passes_(parts.passes),
        edges_(parts.edges) {}

  void Run() {
    for (const Instruction& instruction : program_.instructions()) {
      if (IsGradientSend(instruction)) unsent_.insert(Moved(instruction));
    }
    for (Instruction& instruction : *program_.mutable_instructions()) {
      Begin(instruction);
      Declare(instruction);
      const bool computes =
          KindOfLane(plan_.lanes(), instruction.lane()) == Lane::COMPUTE;
      if (computes || instruction.kind() == Instruction::STEP) {
        Use(Instruction::SCRATCH, Buffer::WORKSPACE,
            computes ? kNone : instruction.unit(), kNone, Instruction::WRITE);
      }
    }
  }

  using OperandWriter::Carried;  // after Run

 private:
  void Declare(const Instruction& instruction) {
    const int u = instruction.unit();
    const int m = instruction.micro_batch();
    switch (instruction.kind()) {
      case Instruction::LOAD_BATCH:
        return Use(Instruction::BATCH, Buffer::BATCH, kNone, m,
                   Instruction::WRITE);
      case Instruction::FORWARD:
      case Instruction::RECOMPUTE:
      case Instruction::BACKWARD_INPUT:
      case Instruction::BACKWARD_WEIGHT:
        return DeclarePass(instruction);
      case Instruction::EXCHANGE:
        return DeclareExchange(instruction);
      case Instruction::REDUCE_GRADS:
        for (int i = 0; i < std::max(1, instruction.unit_count()); ++i) {
          Reduce(u + i);
        }
        if (instruction.unit_count() <= 1) {
          Narrow(u, ReducedRange(plan_.units(u), instruction));
        }
        return;
      case Instruction::SCATTER_GRADS:
        return Scatter(u, instruction);
      case Instruction::GATHER_PARAMETERS:
        return Gather(u, instruction.part());
      case Instruction::PUSH:
        return Push(u);
      case Instruction::PULL:
        return Pull(u);
      case Instruction::CLAIM:
      case Instruction::DELIVER:
      case Instruction::ADMIT:
        return TakeTurn(instruction.kind());
      case Instruction::GRAD_NORM:
        Use(Instruction::WEIGHT_GRADIENTS, Buffer::PARAMETER_GRADIENTS, u,
            kNone, Instruction::READ);
        Narrow(u, RangeOfPart(plan_.units(u), instruction.part()));
        return UseSum(PlaceOfSum(plan_, kSquaredNormSum), Instruction::ADD);
      case Instruction::REDUCE_SCALARS:
        if (instruction.has_when()) {
          // Both flags, which follow each other.
          const SumPlace stop = PlaceOfSum(plan_, kStopSum);
          return UseSum({.first = stop.first, .elements = 2}, Instruction::ADD);
        }
        return Use(Instruction::TOTALS, Buffer::SCALARS, kNone, kNone,
                   Instruction::ADD);
      case Instruction::STEP:
        return Step(u);
      case Instruction::SNAPSHOT:
        return Snapshot(u, instruction.part());
      case Instruction::OUTER_GRADIENT:
        ReadTrained(u);
        return Use(Instruction::CHANGE, Buffer::OUTER_GRADIENTS, u, kNone,
                   Instruction::WRITE);
      case Instruction::OUTER_REDUCE:
        return Use(Instruction::CHANGE, Buffer::OUTER_GRADIENTS, u, kNone,
                   Instruction::ADD);
      case Instruction::OUTER_STEP:
        Use(Instruction::CHANGE, Buffer::OUTER_GRADIENTS, u, kNone,
            Instruction::READ);
        return ChangeTrained(u);
      case Instruction::KEEP:
        return Keep(u);
      case Instruction::MIRROR:
        Use(Instruction::FROM, Buffer::STATE_COPY, kNone, kNone,
            Instruction::READ);
        return Use(Instruction::TO, Buffer::PEER_COPY, kNone, kNone,
                   Instruction::WRITE);
      case Instruction::SEND:
        if (IsGradientSend(instruction)) unsent_.erase(Moved(instruction));
        return Use(Instruction::MOVED, Moved(instruction), Instruction::READ);
      case Instruction::RECV:
        return Use(Instruction::MOVED, Moved(instruction), Instruction::WRITE);
      default:
        CHECK(false) << "no buffers known for "
                     << Instruction::Kind_Name(instruction.kind());
    }
  }

  static bool IsGradientSend(const Instruction& instruction) {
    return instruction.kind() == Instruction::SEND && instruction.gradient();
  }
  static Value Moved(const Instruction& transfer) {
    return {transfer.gradient() ? Buffer::GRADIENT : Buffer::ACTIVATION,
            transfer.unit(), transfer.micro_batch(), transfer.output()};
  }

  // FORWARD, RECOMPUTE, BACKWARD_INPUT or BACKWARD_WEIGHT of a segment: what it
  // reads, then what it writes.
  void DeclarePass(const Instruction& instruction) {
    const int u = instruction.unit();
    const int m = instruction.micro_batch();
    const SegmentUse& use =
        passes_.Of(u, instruction.kind()).at(instruction.segment()).use;
    for (const UnitMemory memory : kReadOrder) {
      for (const MemoryUse& at : use.memories) {
        if (at.memory == memory && !at.writes) UseBytes(at, u, m);
      }
    }
    const bool weight_pass = instruction.kind() == Instruction::BACKWARD_WEIGHT;
    if (!weight_pass) ReadParameters(u, use);
    for (const UnitMemory memory : kWriteOrder) {
      for (const MemoryUse& at : use.memories) {
        if (at.memory == memory && at.writes) UseBytes(at, u, m);
      }
    }
    for (const int owner : GradientUnits(plan_, u)) {
      if (owner == u ? use.weight_gradients : use.tied_gradients) {
        AddToGradients(u, owner);
      }
    }
    if (instruction.kind() == Instruction::FORWARD) {
      const auto addends = passes_.SumsOf(u, instruction.segment());
      for (const SumPlace& run : SumRuns(plan_, u, addends)) {
        UseSum(run, Instruction::ADD);
      }
    }
    // Of one backward pass, the SEND stands behind the weight's half: what it
    // carries is the pass's, and goes when that is done.
    if (!weight_pass || !passes_.EndsBackward(u, instruction.segment())) return;
    for (const Edge& edge : edges_.Into(u)) {
      const Value gradient = {Buffer::GRADIENT, edge.from, m, edge.output};
      if (unsent_.count(gradient) == 0) continue;
      Use(Instruction::INPUT_GRADIENT, gradient, Instruction::ADD);
      at().set_port(edge.input);
    }
  }

  // What it gives and what it gets, one operand where they are the same place;
  // and what says how much of that it is.
  void DeclareExchange(const Instruction& instruction) {
    const int u = instruction.unit();
    const int m = instruction.micro_batch();
    const UnitTable& table = plan_.tables(plan_.units(u).table());
    const auto [from, to, in_place, sizes] =
        PlacesOfExchange(table, passes_.Places(u), instruction.exchange());
    if (!in_place) {
      const bool sums = SumsInPlace(instruction.exchange().collective());
      UseMemory(from, u, m, sums ? Instruction::ADD : Instruction::READ,
                Instruction::FROM);
      Narrow(from, table);
    }
    const bool adds =
        in_place || WritesIntoOthers(table, instruction.exchange());
    UseMemory(to, u, m, adds ? Instruction::ADD : Instruction::WRITE,
              Instruction::TO);
    Narrow(to, table);
    if (!sizes.exists()) return;
    UseMemory(sizes, u, m, Instruction::READ, Instruction::SIZES);
    Narrow(sizes, table);
  }

  // Nothing to say of their end where it is the buffer's.
  void UseBytes(const MemoryUse& use, int u, int m) {
    const bool used = UseMemory({.memory = use.memory, .port = use.port}, u, m,
                                !use.writes ? Instruction::READ
                                : use.reads ? Instruction::ADD
                                            : Instruction::WRITE);
    if (!used) return;
    at().set_port(use.port);
    if (use.end_bytes == 0) return;
    at().set_offset(use.begin_bytes);
    if (use.end_bytes < BytesOfLast()) {
      at().set_bytes(use.end_bytes - use.begin_bytes);
    }
  }

  // The last operand is a tensor of the buffer.
  void Narrow(const TensorPlace& place, const UnitTable& table) {
    NarrowTo({.offset = OffsetInBuffer(plan_, table, place),
              .bytes = BytesOf(table.tensors(place.tensor))});
  }

  // Of a range of a unit's gradients; nothing to say where it is all of them.
  void Narrow(int unit, const Range& range) {
    // Of a unit that is dealt, each rank has other bytes of the range.
    if (range == TrainedRange(plan_.units(unit)) ||
        IsDealt(*FindPlacement(role_, unit))) {
      return;
    }
    const int64_t bytes = BytesOfElement(GradientsType(plan_.units(unit)));
    NarrowTo({.offset = range.begin * bytes, .bytes = range.size() * bytes});
  }

  // Where those of the unit rest in slices, a micro-batch has its own, whole;
  // of parts that are not dealt it adds to those of the step.
  void AddToGradients(int u, int owner) {
    const Instruction::Part part = owner == u ? Instruction::WEIGHT_GRADIENTS
                                              : Instruction::TIED_GRADIENTS;
    if (RestsInSlices(plan_, role_, Buffer::PARAMETER_GRADIENTS, owner)) {
      const int m = instruction().micro_batch();
      const bool first = summed_.insert({owner, m}).second;
      Use(part, Buffer::UNSHARDED_GRADIENTS, owner, m,
          first ? Instruction::WRITE : Instruction::ADD);
      if (!KeepsSome(plan_, *FindPlacement(role_, owner),
                     DealtParts::kTrained)) {
        return;
      }
    }
    const bool first = summed_.insert({owner, kNone}).second;
    Use(part, Buffer::PARAMETER_GRADIENTS, owner, kNone,
        !first                   ? Instruction::ADD
        : StepsLeaveZeros(owner) ? Instruction::ADD_TO_ZEROS
                                 : Instruction::WRITE);
  }

  // Or the first of the next step to add to gradients begins them anew: those
  // that are elsewhere than the optimizer, in another tier or on other ranks,
  // need not move for that.
  bool StepsLeaveZeros(int unit) const {
    return GradientsStayOnDevice(plan_.units(unit)) &&
           !FindPlacement(role_, unit)->has_served();
  }
  // A rank that has added nothing in this program (a stage that only uses
  // frozen parameters of the unit) adds zeros to the sum.
  void Reduce(int u) {
    const bool first = summed_.insert({u, kNone}).second;
    Use(Instruction::WEIGHT_GRADIENTS, Buffer::PARAMETER_GRADIENTS, u, kNone,
        first && !StepsLeaveZeros(u) ? Instruction::WRITE : Instruction::ADD);
  }

  // In place, where the slice is of the same buffer.
  void Scatter(int u, const Instruction& scatter) {
    if (!scatter.has_micro_batch()) {
      return Use(Instruction::WEIGHT_GRADIENTS, Buffer::PARAMETER_GRADIENTS, u,
                 kNone, Instruction::ADD);
    }
    Use(Instruction::WEIGHT_GRADIENTS, Buffer::UNSHARDED_GRADIENTS, u,
        scatter.micro_batch(), Instruction::ADD);
    const bool first = summed_.insert({u, kNone}).second;
    Use(Instruction::SLICE, Buffer::PARAMETER_GRADIENTS, u, kNone,
        first && !StepsLeaveZeros(u) ? Instruction::WRITE : Instruction::ADD);
  }
  // Several fill one buffer for one use of the unit; the first begins it.
  void Gather(int u, int part) {
    if (!RestsInSlices(plan_, role_, Buffer::PARAMETERS, u)) {
      return Use(Instruction::WEIGHTS, Buffer::PARAMETERS, u, kNone,
                 Instruction::ADD);
    }
    const bool first = part == FirstDealtParts(plan_, *FindPlacement(role_, u),
                                               DealtParts::kAll)
                                   .front();
    if (first) ++gathers_[u];
    Use(Instruction::SLICE, Buffer::PARAMETERS, u, kNone, Instruction::READ);
    Use(Instruction::WEIGHTS, Buffer::UNSHARDED_PARAMETERS, u, gathers_[u],
        first ? Instruction::WRITE : Instruction::ADD);
  }

  void Push(int u) {
    if (!Serves(*FindPlacement(role_, u))) {
      return Use(Instruction::WEIGHT_GRADIENTS, Buffer::PARAMETER_GRADIENTS, u,
                 kNone, Instruction::READ);
    }
    Use(Instruction::PUSHED, Buffer::PUSHED_GRADIENTS, u, kNone,
        Instruction::WRITE);
    Use(Instruction::SLICE, Buffer::PARAMETER_GRADIENTS, u, kNone,
        Instruction::WRITE);
    summed_.insert({u, kNone});
  }
  // Of all units.
  void TakeTurn(Instruction::Kind kind) {
    const int64_t stop = PlaceOfSum(plan_, kStopSum).first;
    kind == Instruction::CLAIM
        ? UseSum({.first = stop, .elements = 2}, Instruction::ADD)
        : Use(Instruction::TOTALS, Buffer::SCALARS, kNone, kNone,
              Instruction::ADD);
    for (const Placement& placement : role_.placements()) {
      const int u = placement.unit();
      if (TrainedElements(plan_.units(u)) == 0) continue;
      if (kind != Instruction::DELIVER) Pull(u);
      if (kind == Instruction::CLAIM) continue;
      Use(Instruction::WEIGHT_GRADIENTS, Buffer::PARAMETER_GRADIENTS, u, kNone,
          Serves(placement) ? Instruction::WRITE : Instruction::READ);
    }
  }
  void Pull(int u) {
    const bool gives = Serves(*FindPlacement(role_, u));
    Use(gives ? Instruction::SLICE : Instruction::WEIGHTS, Buffer::PARAMETERS,
        u, kNone, gives ? Instruction::READ : Instruction::WRITE);
  }

  // Whether there is anything to use.
  bool UseMemory(const TensorPlace& place, int u, int m,
                 Instruction::Access access,
                 absl::optional<Instruction::Part> part = absl::nullopt) {
    const auto used = ValueIn({place.memory, place.port}, edges_, u, m);
    return used.has_value() &&
           UseIfAny(part.value_or(used->part), used->value, access);
  }

  void Step(int u) {
    Use(Instruction::WEIGHT_GRADIENTS, Buffer::PARAMETER_GRADIENTS, u, kNone,
        StepsLeaveZeros(u) ? Instruction::ADD : Instruction::READ);
    // The norm of all gradients.
    if (UpdatesNeedNorm(plan_.job().training())) {
      UseSum(PlaceOfSum(plan_, kSquaredNormSum), Instruction::READ);
    }
    ChangeTrained(u);
  }

  void Keep(int u) {
    const Unit& unit = plan_.units(u);
    const bool master = HasMasterWeights(plan_.job().training());
    if (TrainedElements(unit) > 0) ReadTrained(u);
    const bool read = TrainedElements(unit) > 0 && !master;
    if (FrozenRange(unit).size() > 0 && !read) ReadNewest(u);
    Use(Instruction::COPY, Buffer::STATE_COPY, kNone, kNone,
        Instruction::WRITE);
    NarrowTo({.offset = CopyOffsetOfUnit(plan_, role_, u),
              .bytes = CopyBytesOfUnit(plan_, role_, u)});
  }

  // What is frozen is written from where it rests: it is the same then.
  void Snapshot(int u, int part) {
    if (plan_.units(u).parts(part).frozen()) return ReadNewest(u);
    ReadTrained(u);
    if (plan_.job().checkpoint().background()) {
      // The parts of what the rank has to write lie behind one another.
      const BufferName copy = {{Buffer::SNAPSHOT_COPY, u, kNone}, 0};
      Add(copy, Instruction::COPY,
          copied_.insert(u).second ? Instruction::WRITE : Instruction::ADD);
    }
  }

  void ReadParameters(int u, const SegmentUse& use) {
    for (const int owner : GradientUnits(plan_, u)) {
      if (!(owner == u ? use.weights : use.tied_weights)) continue;
      const Instruction::Part part =
          owner == u ? Instruction::WEIGHTS : Instruction::TIED_WEIGHTS;
      if (RestsInSlices(plan_, role_, Buffer::PARAMETERS, owner)) {
        Use(part, Buffer::UNSHARDED_PARAMETERS, owner, gathers_.at(owner),
            Instruction::READ);
        if (!KeepsSome(plan_, *FindPlacement(role_, owner), DealtParts::kAll)) {
          continue;
        }
      }
      const int age = Versions(owner) > 1 ? instruction().weight_version() : 0;
      UseVersion(part, owner, NewestOffset(owner) - age, Instruction::READ);
    }
  }

  const UnitPasses& passes_;
  const Edges& edges_;
  std::set<Value> unsent_;  // gradients that a later instruction sends
  // Units, and micro-batches where these have their own, whose gradients hold
  // something.
  std::set<std::pair<int, int>> summed_;
  std::map<int, int> gathers_;  // of units, so far
  std::set<int> copied_;        // units of which a copy holds something
};

// The versions that a step uses, and what it carries to its next runs.
RoleValues ValuesOf(const Plan& plan, const UnitPasses& passes,
                    const Edges& edges, const Role& role) {
  const Program& step = *StepProgram(role);
  RoleValues values;
  for (const Instruction& instruction : step.instructions()) {
    if (instruction.kind() == Instruction::REDUCE_SCALARS) {
      values.report_lag = -instruction.ahead();
    }
    // Backward-weight needs gradients and activations only.
    if (instruction.weight_version() == 0 ||
        (instruction.kind() != Instruction::FORWARD &&
         instruction.kind() != Instruction::RECOMPUTE &&
         instruction.kind() != Instruction::BACKWARD_INPUT)) {
      continue;
    }
    const SegmentUse& use = passes.Of(instruction.unit(), instruction.kind())
                                .at(instruction.segment())
                                .use;
    for (const int owner : GradientUnits(plan, instruction.unit())) {
      // What never changes has one version.
      if (!(owner == instruction.unit() ? use.weights : use.tied_weights) ||
          TrainedElements(plan.units(owner)) == 0) {
        continue;
      }
      int& versions = values.versions[owner];
      versions = std::max(versions, 1 + instruction.weight_version());
    }
  }
  Program trial = step;
  Declaration declaration({plan, passes, edges, values, role}, trial);
  declaration.Run();
  for (const Value& value : declaration.Carried()) {
    if (!IsResident(value.kind)) values.carried.insert(value);
  }
  return values;
}

}  // namespace

void DeclareBuffers(Draft& draft) {
  const UnitPasses passes(draft.plan);
  const Edges edges(draft.plan);
  for (Role& role : *draft.plan.mutable_roles()) {
    const RoleValues values = ValuesOf(draft.plan, passes, edges, role);
    for (Program& program : *role.mutable_programs()) {
      Declaration({draft.plan, passes, edges, values, role}, program).Run();
    }
  }
}

}  // namespace troupe
