#include "proto/plan/check_passes.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/batch.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/edges.h"
#include "proto/plan/exchange_places.h"
#include "proto/plan/fault.h"
#include "proto/plan/find_program.h"
#include "proto/plan/mesh.h"
#include "proto/plan/operand.h"
#include "proto/plan/program_text.h"
#include "proto/plan/replica_share.h"
#include "proto/plan/roles.h"
#include "proto/plan/trained.h"
#include "proto/plan/unit_passes.h"

namespace troupe {
namespace {

// A pass of a unit over a micro-batch: where it is, and its instruction.
struct PassAt {
  int rank = 0;
  const Instruction* instruction = nullptr;
};
// Of an exchange, its op stands in place of the segment; backward ones count
// from the other end. `again`: of values that RECOMPUTE makes.
struct PassName {
  Instruction::Kind kind = Instruction::KIND_UNSPECIFIED;
  int unit = 0;
  int segment = 0;
  int micro_batch = 0;
  bool again = false;
  auto operator<=>(const PassName&) const = default;
};
using Passes = std::map<PassName, std::vector<PassAt>>;

bool IsPass(Instruction::Kind kind) {
  return kind == Instruction::FORWARD || kind == Instruction::RECOMPUTE ||
         kind == Instruction::BACKWARD_INPUT ||
         kind == Instruction::BACKWARD_WEIGHT || kind == Instruction::EXCHANGE;
}

PassName NameOf(const Instruction& instruction) {
  const bool exchanges = instruction.kind() == Instruction::EXCHANGE;
  return {.kind = instruction.kind(),
          .unit = instruction.unit(),
          .segment = exchanges ? ExchangeNumber(instruction.exchange())
                               : instruction.segment(),
          .micro_batch = instruction.micro_batch(),
          .again = exchanges && instruction.exchange().again()};
}

std::string Words(const PassName& pass) {
  std::string words = Instruction::Kind_Name(pass.kind);
  if (pass.kind == Instruction::EXCHANGE) {
    absl::StrAppend(&words, " of op ",
                    pass.segment < 0 ? -1 - pass.segment : pass.segment,
                    pass.segment < 0 ? ", backward,"
                    : pass.again     ? ", again,"
                                     : "");
  } else if (pass.segment > 0) {
    absl::StrAppend(&words, " of segment ", pass.segment);
  }
  return absl::StrCat(words, " of unit ", pass.unit);
}

// One of the mesh's pipelines: the ranks of one place on all other axes.
class Pipeline {
 public:
  Pipeline(const Plan& plan, const UnitPasses& unit_passes, const Edges& edges,
           int index)
      : plan_(plan), unit_passes_(unit_passes), edges_(edges) {
    for (int p = 0; p < AxisSize(plan.mesh(), "pipeline"); ++p) {
      ranks_.push_back(RankOfPipeline(plan.mesh(), index, p));
    }
  }

  // Pipelines of the same roles that are to run equally many micro-batches are
  // alike.
  std::vector<int> Look() const {
    std::vector<int> look;
    for (const int rank : ranks_) look.push_back(RoleIndexOf(plan_, rank));
    look.push_back(MicroBatches(Program::TRAIN));
    look.push_back(MicroBatches(Program::VALIDATE));
    return look;
  }

  Passes PassesOf(Program::Kind kind) const {
    Passes passes;
    for (const int rank : ranks_) {
      const Program* const program = FindProgram(RoleOf(plan_, rank), kind);
      if (program == nullptr) continue;
      for (const Instruction& instruction : program->instructions()) {
        if (!IsPass(instruction.kind())) continue;
        passes[NameOf(instruction)].push_back({rank, &instruction});
      }
    }
    return passes;
  }

  bool Has(Program::Kind kind) const {
    return FindProgram(RoleOf(plan_, ranks_.front()), kind) != nullptr;
  }

  absl::Status CheckOnce(Program::Kind kind, const Passes& passes) const {
    const bool train = kind == Program::TRAIN;
    const int micro_batches = MicroBatches(kind);
    size_t wanted_in_all = 0;
    for (int u = 0; u < plan_.units_size(); ++u) {
      for (PassName& wanted : WantedOf(u, train)) {
        for (int m = 0; m < micro_batches; ++m) {
          wanted.micro_batch = m;
          const auto found = passes.find(wanted);
          const size_t count = found == passes.end() ? 0 : found->second.size();
          if (count != 1) return Miscounted(kind, wanted, count);
          ++wanted_in_all;
        }
      }
    }
    if (wanted_in_all == passes.size()) return absl::OkStatus();
    for (const auto& [name, places] : passes) {
      const std::vector<PassName> wanted = WantedOf(name.unit, train);
      PassName any = name;
      any.micro_batch = 0;
      const bool known =
          std::find(wanted.begin(), wanted.end(), any) != wanted.end();
      if (!known || name.micro_batch >= micro_batches) {
        return ProgramFault({.rank = places.front().rank, .kind = kind},
                            *places.front().instruction,
                            "the plan's units have no such pass");
      }
    }
    return absl::OkStatus();
  }

  // All that is done with a micro-batch of a unit, of micro-batch 0.
  std::vector<PassName> WantedOf(int u, bool train) const {
    std::vector<PassName> wanted;
    for (const Instruction::Kind kind : kUnitPasses) {
      const bool forward = kind == Instruction::FORWARD;
      const bool again = kind == Instruction::RECOMPUTE;
      if (!forward && !train) continue;
      const auto& passes = unit_passes_.Of(u, kind);
      for (int s = 0; s < static_cast<int>(passes.size()); ++s) {
        if (passes[s].use.works) {
          wanted.push_back({.kind = kind, .unit = u, .segment = s});
        }
        const int exchange = passes[s].segment.exchange;
        if (exchange < 0 || kind == Instruction::BACKWARD_WEIGHT ||
            (again && !unit_passes_.ExchangesAgain(u, exchange))) {
          continue;
        }
        Instruction::Exchange what;
        what.set_op(exchange);
        what.set_backward(kind == Instruction::BACKWARD_INPUT);
        wanted.push_back({.kind = Instruction::EXCHANGE,
                          .unit = u,
                          .segment = ExchangeNumber(what),
                          .again = again});
      }
    }
    return wanted;
  }

  // Recompute and backward use what forward used, as many steps ago as it ran
  // ahead.
  absl::Status CheckVersions(const Passes& passes) const {
    const Versions kept = KeptVersions();
    for (const auto& [name, places] : passes) {
      const Instruction::Kind kind = name.kind;
      const int u = name.unit;
      if (kind == Instruction::EXCHANGE) continue;
      const PassAt& at = places.front();
      const int age = at.instruction->weight_version();
      const auto found = kept.find({at.rank, u});
      const int versions = found == kept.end() ? 1 : found->second;
      const SegmentUse& use = unit_passes_.Of(u, kind).at(name.segment).use;
      const bool reads = kind != Instruction::BACKWARD_WEIGHT &&
                         (use.weights || use.tied_weights) &&
                         TrainedElements(plan_.units(u)) > 0;
      if (age < 0 || (reads && age >= versions)) {
        return ProgramFault(
            {.rank = at.rank, .kind = Program::TRAIN}, *at.instruction,
            absl::StrCat("uses weights that are ", age,
                         " steps old, and the rank keeps ", versions,
                         versions == 1 ? " version" : " versions",
                         ": they no longer exist"));
      }
      if (kind == Instruction::FORWARD) continue;
      const auto forward = passes.find({.kind = Instruction::FORWARD,
                                        .unit = u,
                                        .micro_batch = name.micro_batch});
      if (forward == passes.end()) continue;
      const PassAt& before = forward->second.front();
      if (at.rank != before.rank) {
        return ProgramFault(
            {.rank = at.rank, .kind = Program::TRAIN}, *at.instruction,
            absl::StrCat("its forward ran on rank ", before.rank));
      }
      const int used =
          before.instruction->weight_version() + before.instruction->ahead();
      if (age == used) continue;
      return ProgramFault({.rank = at.rank, .kind = Program::TRAIN},
                          *at.instruction,
                          absl::StrCat("uses weights that are ", age,
                                       " steps old, its forward used some that "
                                       "are now ",
                                       used));
    }
    return absl::OkStatus();
  }

  // An exchange turns the tensors of its op, where they lie; and what a
  // segment's ops use, its instruction says that it does.
  absl::Status CheckPlaces(Program::Kind kind, const Passes& passes) const {
    for (const auto& [name, places] : passes) {
      if (name.kind != Instruction::EXCHANGE) {
        for (const PassAt& at : places) {
          RETURN_IF_ERROR(CheckUses(kind, name, at));
        }
        continue;
      }
      const Instruction& exchange = *places.front().instruction;
      const UnitTable& table = plan_.tables(plan_.units(name.unit).table());
      const auto [from, to, in_place, sizes] = PlacesOfExchange(
          table, unit_passes_.Places(name.unit), exchange.exchange());
      for (const PassAt& at : places) {
        const Program& program = *FindProgram(RoleOf(plan_, at.rank), kind);
        const Instruction::Operand* const gets =
            LiesAt(program, *at.instruction, Instruction::TO, table, to);
        const Instruction::Operand* const gives =
            in_place ? gets
                     : LiesAt(program, *at.instruction, Instruction::FROM,
                              table, from);
        const Instruction::Operand* const says =
            LiesAt(program, *at.instruction, Instruction::SIZES, table, sizes);
        const bool right = (says != nullptr) == sizes.exists() &&
                           gets != nullptr && gives != nullptr &&
                           Writes(*gets) && Reads(*gives) &&
                           (Writes(*gives) ||
                            !SumsInPlace(exchange.exchange().collective())) &&
                           at.instruction->operands_size() ==
                               (in_place ? 1 : 2) + (sizes.exists() ? 1 : 0);
        if (right) continue;
        return ProgramFault({.rank = at.rank, .kind = kind}, *at.instruction,
                            "its operands are not where its unit's tensors "
                            "lie, or not for what it "
                            "does with them");
      }
    }
    return absl::OkStatus();
  }

  // What TRAIN computes ahead, FILL computes before the first TRAIN.
  absl::Status CheckFill(const Passes& train, const Passes& fill) const {
    for (const auto& [name, places] : train) {
      const bool forward = name.kind == Instruction::FORWARD ||
                           (name.kind == Instruction::EXCHANGE &&
                            name.segment >= 0 && !name.again);
      const size_t wanted = forward ? places.front().instruction->ahead() : 0;
      const auto found = fill.find(name);
      const size_t count = found == fill.end() ? 0 : found->second.size();
      if (count != wanted) return Miscounted(Program::FILL, name, count);
    }
    return absl::OkStatus();
  }

 private:
  int MicroBatches(Program::Kind kind) const {
    const int replica = ReplicaOf(plan_.mesh(), ranks_.front());
    return ShareOf(plan_.derived(), kind, replica).count;
  }

  // The operand of this part, if it is the tensor; else null.
  const Instruction::Operand* LiesAt(const Program& program,
                                     const Instruction& instruction,
                                     Instruction::Part part,
                                     const UnitTable& table,
                                     const TensorPlace& place) const {
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (operand.part() != part) continue;
      const Buffer& buffer = program.buffers(operand.buffer());
      const bool right =
          IsOf({place.memory, place.port}, buffer, instruction) &&
          operand.offset() == OffsetInBuffer(plan_, table, place);
      return right ? &operand : nullptr;
    }
    return nullptr;
  }

  // An operand has all that its ops use, for what they do with it; and what
  // it says is written anew, they write.
  absl::Status CheckUses(Program::Kind kind, const PassName& name,
                         const PassAt& at) const {
    if (!plan_.units(name.unit).has_table()) return absl::OkStatus();
    const Program& program = *FindProgram(RoleOf(plan_, at.rank), kind);
    const std::vector<MemoryUse>& uses =
        unit_passes_.Of(name.unit, name.kind).at(name.segment).use.memories;
    const ProgramPlace place = {.rank = at.rank, .kind = kind};
    const auto& operands = at.instruction->operands();
    for (const MemoryUse& use : uses) {
      const bool named = std::any_of(
          operands.begin(), operands.end(),
          [&](const Instruction::Operand& operand) {
            const Buffer& buffer = program.buffers(operand.buffer());
            return IsOf({use.memory, use.port}, buffer, *at.instruction) &&
                   operand.port() == use.port &&
                   (!use.reads || Reads(operand)) &&
                   (!use.writes || Writes(operand)) &&
                   Covers(BytesOf(operand, buffer), BytesIn(buffer, use));
          });
      if (named) continue;
      return ProgramFault(
          place, *at.instruction,
          absl::StrCat("its operands have not all that its ops ",
                       use.writes ? "write" : "read", ": ",
                       BytesText({use.begin_bytes, use.end_bytes}), " of ",
                       Buffer::Kind_Name(BufferKindOf(use.memory))));
    }
    for (const Instruction::Operand& operand : operands) {
      const Buffer& buffer = program.buffers(operand.buffer());
      if (operand.access() != Instruction::WRITE || !IsOfUnits(buffer.kind())) {
        continue;
      }
      const BytesUsed bytes = BytesOf(operand, buffer);
      const bool written =
          std::any_of(uses.begin(), uses.end(), [&](const MemoryUse& use) {
            return use.writes &&
                   IsOf({use.memory, use.port}, buffer, *at.instruction) &&
                   Covers(BytesIn(buffer, use), bytes);
          });
      if (written) continue;
      return ProgramFault(place, *at.instruction,
                          absl::StrCat("says that it writes ", BytesText(bytes),
                                       " of ", Buffer::Kind_Name(buffer.kind()),
                                       ", which its ops do not"));
    }
    return absl::OkStatus();
  }

  static BytesUsed BytesIn(const Buffer& buffer, const MemoryUse& use) {
    return {use.begin_bytes,
            use.end_bytes == 0 ? buffer.bytes() : use.end_bytes};
  }
  static std::string BytesText(const BytesUsed& bytes) {
    if (bytes.end == 0) return "all";
    return absl::StrCat("bytes ", bytes.begin, " to ", bytes.end);
  }

  struct Memory {
    UnitMemory memory = UnitMemory::kNone;
    int port = 0;
  };
  // Whether the buffer is the memory, of the pass's unit and micro-batch.
  bool IsOf(const Memory& memory, const Buffer& buffer,
            const Instruction& pass) const {
    if (buffer.kind() != BufferKindOf(memory.memory) ||
        buffer.micro_batch() != pass.micro_batch()) {
      return false;
    }
    if (buffer.kind() == Buffer::BATCH) return true;
    switch (memory.memory) {
      case UnitMemory::kInput:
      case UnitMemory::kInputGradient: {
        const auto read = edges_.Into(pass.unit());
        if (memory.port >= static_cast<int>(read.size())) return false;
        const Edge& edge = read[memory.port];
        const bool value = memory.memory == UnitMemory::kInput;
        return buffer.unit() == edge.from &&
               buffer.output() == (value ? edge.value : edge.output);
      }
      default:
        return buffer.unit() == pass.unit() && buffer.output() == memory.port;
    }
  }
  static bool IsOfUnits(Buffer::Kind kind) {
    for (int m = 0; m < kUnitMemories; ++m) {
      if (BufferKindOf(static_cast<UnitMemory>(m)) == kind) return true;
    }
    return false;
  }

  static Buffer::Kind BufferKindOf(UnitMemory memory) {
    switch (memory) {
      case UnitMemory::kBatch:
        return Buffer::BATCH;
      case UnitMemory::kInput:
      case UnitMemory::kOutput:
        return Buffer::ACTIVATION;
      case UnitMemory::kInputGradient:
      case UnitMemory::kOutputGradient:
        return Buffer::GRADIENT;
      case UnitMemory::kStash:
        return Buffer::STASH;
      case UnitMemory::kWeightStash:
        return Buffer::WEIGHT_STASH;
      case UnitMemory::kSegmentValues:
        return Buffer::SEGMENT_VALUES;
      case UnitMemory::kSegmentGradients:
        return Buffer::SEGMENT_GRADIENTS;
      case UnitMemory::kRecomputed:
        return Buffer::RECOMPUTED;
      default:
        return Buffer::KIND_UNSPECIFIED;
    }
  }

  absl::Status Miscounted(Program::Kind kind, const PassName& name,
                          size_t count) const {
    const int u = name.unit;
    std::vector<int> holders;
    for (const int rank : ranks_) {
      if (FindPlacement(RoleOf(plan_, rank), u) != nullptr) {
        holders.push_back(rank);
      }
    }
    const std::string what = absl::StrCat(
        Words(name), " is ",
        count == 0 ? "missing" : absl::StrCat("there ", count, " times"),
        " for micro-batch ", name.micro_batch);
    if (holders.size() == 1) {
      return ProgramFault({.rank = holders.front(), .kind = kind}, what);
    }
    return absl::FailedPreconditionError(
        absl::StrCat(Program::Kind_Name(kind), ": ", what, " on ranks ",
                     absl::StrJoin(holders, ", "), " together"));
  }

  // Copies of a unit's parameters that a rank keeps, where it has a buffer for
  // them. Of all at once: a program has as many buffers as passes.
  using Versions = std::map<std::pair<int, int>, int>;  // by rank and unit
  Versions KeptVersions() const {
    Versions kept;
    for (const int rank : ranks_) {
      const Role& role = RoleOf(plan_, rank);
      const Program* const train = FindProgram(role, Program::TRAIN);
      for (const Buffer& buffer : train->buffers()) {
        if (buffer.kind() != Buffer::PARAMETERS || IsFetched(buffer)) continue;
        kept.emplace(std::make_pair(rank, buffer.unit()),
                     CopiesOf(role.slots(buffer.slot())));
      }
    }
    return kept;
  }

  const Plan& plan_;
  const UnitPasses& unit_passes_;
  const Edges& edges_;
  std::vector<int> ranks_;
};

}  // namespace

absl::Status CheckPasses(const Plan& plan) {
  const UnitPasses unit_passes(plan);
  const Edges edges(plan);
  std::set<std::vector<int>> seen;
  for (int i = 0; i < PipelineCount(plan.mesh()); ++i) {
    const Pipeline pipeline(plan, unit_passes, edges, i);
    if (!seen.insert(pipeline.Look()).second) continue;
    const bool evaluates = plan.job().evaluate();
    const Passes train = pipeline.PassesOf(Program::TRAIN);
    if (!evaluates) {
      RETURN_IF_ERROR(pipeline.CheckOnce(Program::TRAIN, train));
      RETURN_IF_ERROR(pipeline.CheckPlaces(Program::TRAIN, train));
    }
    if (evaluates || pipeline.Has(Program::VALIDATE)) {
      const Passes validate = pipeline.PassesOf(Program::VALIDATE);
      RETURN_IF_ERROR(pipeline.CheckOnce(Program::VALIDATE, validate));
      RETURN_IF_ERROR(pipeline.CheckPlaces(Program::VALIDATE, validate));
    }
    if (evaluates) continue;  // it has no other program (CheckWork)
    const Passes fill = pipeline.PassesOf(Program::FILL);
    RETURN_IF_ERROR(pipeline.CheckPlaces(Program::FILL, fill));
    RETURN_IF_ERROR(pipeline.CheckVersions(train));
    RETURN_IF_ERROR(pipeline.CheckFill(train, fill));
  }
  return absl::OkStatus();
}

}  // namespace troupe
