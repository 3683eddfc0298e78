#include "proto/plan/check_shape.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/fault.h"
#include "proto/plan/groups.h"
#include "proto/plan/index.h"
#include "proto/plan/lanes.h"
#include "proto/plan/meeting.h"
#include "proto/plan/mesh.h"
#include "proto/plan/operand.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/part_fits.h"
#include "proto/plan/program_text.h"
#include "proto/plan/replica_share.h"
#include "proto/plan/roles.h"
#include "proto/plan/segment_use.h"
#include "proto/plan/segments.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/ways.h"

namespace troupe {
namespace {

// What an instruction of each kind carries.
struct Needs {
  bool unit = false;
  bool micro_batch = false;
  bool peer = false;
  bool maybe_unit = false;
  bool maybe_micro_batch = false;
};
Needs NeedsOf(Instruction::Kind kind) {
  switch (kind) {
    case Instruction::LOAD_BATCH:
      return {.micro_batch = true};
    case Instruction::FORWARD:
    case Instruction::RECOMPUTE:
    case Instruction::BACKWARD_INPUT:
    case Instruction::BACKWARD_WEIGHT:
    case Instruction::EXCHANGE:
      return {.unit = true, .micro_batch = true};
    case Instruction::SEND:
    case Instruction::RECV:
      return {.unit = true, .micro_batch = true, .peer = true};
    case Instruction::REDUCE_SCALARS:
    case Instruction::MIRROR:
      return {};
    case Instruction::SCATTER_GRADS:
      return {.unit = true, .maybe_micro_batch = true};
    case Instruction::CLAIM:
    case Instruction::DELIVER:
    case Instruction::ADMIT:
      return {};  // all units
    case Instruction::FETCH:
    case Instruction::EVICT:
      return {.maybe_unit = true, .maybe_micro_batch = true};
    default:
      return {.unit = true};
  }
}

absl::Status CheckLanes(const Lanes& lanes) {
  std::set<std::string> names;
  std::set<int> kinds;
  for (const Lane& lane : lanes) {
    if (lane.kind() == Lane::KIND_UNSPECIFIED ||
        !Lane::Kind_IsValid(lane.kind())) {
      return absl::FailedPreconditionError(
          absl::StrCat("lane \"", lane.name(), "\" has no kind"));
    }
    if (lane.name().empty() || !names.insert(lane.name()).second) {
      return absl::FailedPreconditionError(absl::StrCat(
          "two lanes are named \"", lane.name(), "\", or one has no name"));
    }
    for (const int kind : lane.runs()) {
      if (kinds.insert(kind).second) continue;
      return absl::FailedPreconditionError(
          absl::StrCat(Instruction::Kind_Name(kind), " runs on lane \"",
                       lane.name(), "\" and on one before it"));
    }
  }
  return absl::OkStatus();
}

// The instructions of one program.
class ShapeCheck {
 public:
  ShapeCheck(const Plan& plan, const Role& role, const Program& program)
      : plan_(plan),
        role_(role),
        place_{.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()},
        program_(program) {
    for (const Placement& placement : role.placements()) {
      units_.insert(placement.unit());
    }
  }

  absl::Status Run() const {
    for (int b = 0; b < program_.buffers_size(); ++b) {
      RETURN_IF_ERROR(CheckBuffer(b));
    }
    for (int i = 0; i < program_.instructions_size(); ++i) {
      const Instruction& instruction = program_.instructions(i);
      if (instruction.kind() == Instruction::KIND_UNSPECIFIED ||
          !Instruction::Kind_IsValid(instruction.kind())) {
        return ProgramFault(place_,
                            absl::StrCat("instruction ", i, " has no kind"));
      }
      RETURN_IF_ERROR(CheckFields(instruction));
      RETURN_IF_ERROR(CheckGroup(instruction));
      RETURN_IF_ERROR(CheckIndices(i));
      if (instruction.kind() == Instruction::EXCHANGE) {
        RETURN_IF_ERROR(CheckExchange(instruction));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckBuffer(int index) const {
    const Buffer& buffer = program_.buffers(index);
    if (!IsIndexIn(buffer.slot(), role_.slots_size())) {
      return ProgramFault(
          place_, absl::StrCat("buffer ", index, " is in slot ", buffer.slot(),
                               " of ", role_.slots_size()));
    }
    const int64_t bytes = role_.slots(buffer.slot()).bytes();
    if (buffer.offset() < 0 || buffer.offset() > bytes || buffer.bytes() < 1 ||
        buffer.bytes() > bytes - buffer.offset()) {
      return ProgramFault(
          place_, absl::StrCat(Buffer::Kind_Name(buffer.kind()), " buffer ",
                               index, " of ", buffer.bytes(),
                               " bytes is in slot ", buffer.slot(), " of ",
                               bytes, ", from byte ", buffer.offset(), " on"));
    }
    const int64_t alignment = AlignmentOf(TierOf(buffer));
    if (buffer.offset() % alignment != 0) {
      return ProgramFault(
          place_,
          absl::StrCat(Buffer::Kind_Name(buffer.kind()), " buffer ", index,
                       " begins at byte ", buffer.offset(), " of slot ",
                       buffer.slot(), ", want a multiple of ", alignment));
    }
    const int copies = CopiesOf(role_.slots(buffer.slot()));
    const int offset = buffer.copy_offset();
    if (copies == 1 ? offset != 0 : offset < -copies || offset >= copies) {
      return ProgramFault(
          place_,
          absl::StrCat(Buffer::Kind_Name(buffer.kind()), " buffer ", index,
                       " is ", offset, " programs away, and slot ",
                       buffer.slot(), " keeps ", copies,
                       copies == 1 ? " copy" : " copies"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckFields(const Instruction& instruction) const {
    const Needs needs = NeedsOf(instruction.kind());
    if (!IsIndexIn(instruction.lane(), plan_.lanes_size())) {
      return ProgramFault(place_, instruction,
                          absl::StrCat("is on lane ", instruction.lane(),
                                       " of ", plan_.lanes_size()));
    }
    if (!needs.maybe_unit && needs.unit != instruction.has_unit()) {
      return ProgramFault(place_, instruction,
                          needs.unit ? "has no unit" : "has a unit");
    }
    RETURN_IF_ERROR(CheckUnits(instruction, needs));
    if (!needs.maybe_micro_batch &&
        needs.micro_batch != instruction.has_micro_batch()) {
      return ProgramFault(
          place_, instruction,
          needs.micro_batch ? "has no micro-batch" : "has a micro-batch");
    }
    const int micro_batches = ShareOf(plan_.derived(), program_.kind(),
                                      ReplicaOf(plan_.mesh(), place_.rank))
                                  .count;
    if (instruction.has_micro_batch() &&
        !IsIndexIn(instruction.micro_batch(), micro_batches)) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("there are ", micro_batches, " micro-batches"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckUnits(const Instruction& instruction,
                          const Needs& needs) const {
    const int count =
        instruction.has_unit() ? std::max(1, instruction.unit_count()) : 0;
    for (int k = 0; k < count; ++k) {
      const int unit = instruction.unit() + k;
      // What moves may be of a unit that only the peer has, or a stage before.
      const bool moves = needs.peer || IsMove(instruction.kind());
      const bool there =
          moves ? IsIndexIn(unit, plan_.units_size()) : units_.count(unit) > 0;
      if (!there) {
        return ProgramFault(
            place_, instruction,
            absl::StrCat("unit ", unit, " is not on this rank"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckPeer(const Instruction& instruction) const {
    const bool transfer = IsTransfer(instruction.kind());
    if (transfer != instruction.has_peer()) {
      return ProgramFault(place_, instruction,
                          transfer ? "has no peer" : "has a peer");
    }
    if (!transfer) return absl::OkStatus();
    if (!NamesPlaceOn(role_, "pipeline")) {
      return ProgramFault(place_, instruction,
                          "its role is at no one place of the pipeline");
    }
    const Group& group = plan_.groups(instruction.group());
    const bool there =
        IsIndexIn(instruction.peer(), AxisSize(plan_.mesh(), "pipeline"));
    const int peer =
        there ? PeerRank(plan_.mesh(), place_.rank, instruction.peer())
              : place_.rank;
    if (peer == place_.rank ||
        GroupNumber(plan_.mesh(), group, peer) !=
            GroupNumber(plan_.mesh(), group, place_.rank)) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("place ", instruction.peer(),
                       " on the pipeline is no other rank of group ",
                       group.name()));
    }
    return absl::OkStatus();
  }

  absl::Status CheckGroup(const Instruction& instruction) const {
    if (!IsCollective(instruction.kind()) && !IsTransfer(instruction.kind()) &&
        !IsTurn(instruction.kind())) {
      return CheckPeer(instruction);
    }
    if (!instruction.has_group() ||
        !IsIndexIn(instruction.group(), plan_.groups_size())) {
      return ProgramFault(place_, instruction, "has no group");
    }
    const Group& group = plan_.groups(instruction.group());
    if (!AreIn(plan_.mesh(), role_, group)) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("this rank is not in group ", group.name()));
    }
    return CheckPeer(instruction);
  }

  absl::Status CheckIndices(int index) const {
    const Instruction& instruction = program_.instructions(index);
    std::map<std::pair<Instruction::Part, int>, int> parts;  // to buffers
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (!IsIndexIn(operand.buffer(), program_.buffers_size())) {
        return ProgramFault(place_, instruction,
                            absl::StrCat("buffer ", operand.buffer(), " of ",
                                         program_.buffers_size()));
      }
      const Buffer& buffer = program_.buffers(operand.buffer());
      const Buffer::Kind kind = buffer.kind();
      if (!Fits(instruction, operand, buffer) ||
          !Instruction::Access_IsValid(operand.access())) {
        return ProgramFault(
            place_, instruction,
            absl::StrCat(Buffer::Kind_Name(kind), " buffer ", operand.buffer(),
                         " cannot be its ",
                         Instruction::Part_Name(operand.part())));
      }
      const int64_t bytes = buffer.bytes();
      if (operand.offset() < 0 || operand.offset() >= bytes ||
          operand.bytes() < 0 || operand.bytes() > bytes - operand.offset()) {
        return ProgramFault(
            place_, instruction,
            absl::StrCat("bytes ", operand.offset(), " to ",
                         operand.offset() + operand.bytes(), " of a ",
                         Buffer::Kind_Name(kind), " buffer of ", bytes));
      }
      // The gradients of several units are one range. Of a pass's parameters
      // and their gradients, what is not dealt is used where it rests.
      const bool rests =
          buffer.slice() && std::count(kUnitPasses.begin(), kUnitPasses.end(),
                                       instruction.kind()) > 0;
      const auto [part, is_new] =
          parts.emplace(std::pair(operand.part(), rests ? -1 : operand.port()),
                        operand.buffer());
      if (!is_new && part->second != operand.buffer() &&
          instruction.kind() != Instruction::REDUCE_GRADS &&
          !IsTurn(instruction.kind())) {
        return ProgramFault(
            place_, instruction,
            absl::StrCat("has two buffers for its ",
                         Instruction::Part_Name(operand.part())));
      }
    }
    for (const int earlier : instruction.after()) {
      if (IsIndexIn(earlier, index)) continue;
      return ProgramFault(
          place_, instruction,
          absl::StrCat("is instruction ", index, " and waits for ", earlier,
                       ", which is not earlier"));
    }
    return absl::OkStatus();
  }

  // It does what the unit's table says, with all of the tensors, over the ranks
  // along its axis.
  absl::Status CheckExchange(const Instruction& instruction) const {
    const Unit& unit = plan_.units(instruction.unit());
    const int index = instruction.exchange().op();
    const bool backward = instruction.exchange().backward();
    const UnitTable none;
    const UnitTable& table =
        unit.has_table() ? plan_.tables(unit.table()) : none;
    if (!IsIndexIn(index, table.ops_size()) ||
        !IsExchange(table.ops(index).kind())) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("op ", index, " of its unit is no EXCHANGE"));
    }
    const Op& op = table.ops(index);
    const Collective wanted =
        backward ? op.exchange().backward() : op.exchange().forward();
    const TensorSpec& x = table.tensors(op.inputs(0).tensor());
    const Op::Operand& made =
        op.kind() == Op::RETURN ? op.inputs(1) : op.outputs(0);
    const TensorSpec& y = table.tensors(made.tensor());
    if (instruction.exchange().collective() != wanted ||
        wanted == COLLECTIVE_UNSPECIFIED ||
        instruction.exchange().dtype() != x.dtype()) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("is ",
                       Collective_Name(instruction.exchange().collective()),
                       " of ", ElementType_Name(instruction.exchange().dtype()),
                       ", where its unit needs ", Collective_Name(wanted),
                       " of ", ElementType_Name(x.dtype())));
    }
    RETURN_IF_ERROR(
        CheckBytes(instruction, Instruction::FROM, backward ? y : x));
    RETURN_IF_ERROR(CheckBytes(instruction, Instruction::TO, backward ? x : y));
    const int sizes = OpView(table, op).Input("offsets");
    if (sizes >= 0) {
      RETURN_IF_ERROR(
          CheckBytes(instruction, Instruction::SIZES, table.tensors(sizes)));
    }
    const Group& group = plan_.groups(instruction.group());
    if (IsAlong(group, op.exchange().axes())) return absl::OkStatus();
    return ProgramFault(
        place_, instruction,
        absl::StrCat("group ", group.name(), " is not of the ranks along ",
                     absl::StrJoin(op.exchange().axes(), " x ")));
  }

  absl::Status CheckBytes(const Instruction& instruction,
                          Instruction::Part part,
                          const TensorSpec& tensor) const {
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (operand.part() != part || operand.bytes() == BytesOf(tensor)) {
        continue;
      }
      return ProgramFault(
          place_, instruction,
          absl::StrCat("moves ", operand.bytes(), " bytes, where ",
                       tensor.name(), " has ", BytesOf(tensor)));
    }
    return absl::OkStatus();
  }

  const Plan& plan_;
  const Role& role_;
  const ProgramPlace place_;  // of the role's first rank
  const Program& program_;
  std::set<int> units_;
};

absl::Status CheckGroups(const Plan& plan) {
  std::set<std::string> names;
  for (const Group& group : plan.groups()) {
    RETURN_IF_ERROR(CheckGroup(plan.mesh(), group));
    RETURN_IF_ERROR(CheckWays(group, GroupSize(plan.mesh(), group)));
    if (names.insert(group.name()).second) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("there are two groups ", group.name()));
  }
  return absl::OkStatus();
}

// What a role says to hold is there, and so are those that hold the same.
absl::Status CheckPlacements(const Plan& plan, const Role& role) {
  const auto known = [&](bool given, int group) {
    return !given || (IsIndexIn(group, plan.groups_size()) &&
                      AreIn(plan.mesh(), role, plan.groups(group)));
  };
  for (const Placement& placement : role.placements()) {
    const std::string where =
        absl::StrCat("role ", RoleText(role), ": unit ", placement.unit());
    if (!IsIndexIn(placement.unit(), plan.units_size())) {
      return absl::FailedPreconditionError(
          absl::StrCat(where, ": there is no such unit"));
    }
    const int parts = plan.units(placement.unit()).parts_size();
    bool groups = placement.parts_size() == parts &&
                  known(placement.has_served(), placement.served().group()) &&
                  (!placement.has_served() ||
                   IsIndexIn(placement.served().servers(), plan.groups_size()));
    for (const Placement::Part& part : placement.parts()) {
      groups &= known(part.has_summed(), part.summed()) &&
                known(part.has_shared(), part.shared()) &&
                known(part.has_dealt(), part.dealt());
    }
    if (groups) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        where, " has ", parts, " parts, and ", placement.parts_size(),
        " that say with whom it has them, in groups that its ranks are in"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckShape(const Plan& plan) {
  const absl::Status mesh = CheckMesh(plan.mesh());
  if (!mesh.ok()) return absl::FailedPreconditionError(mesh.message());
  RETURN_IF_ERROR(CheckLanes(plan.lanes()));
  RETURN_IF_ERROR(CheckGroups(plan));
  RETURN_IF_ERROR(CheckRoles(plan));
  RETURN_IF_ERROR(CheckReplicaShares(plan));
  for (const Role& role : plan.roles()) {
    RETURN_IF_ERROR(CheckPlacements(plan, role));
    std::set<Program::Kind> kinds;
    for (const Program& program : role.programs()) {
      if (!kinds.insert(program.kind()).second) {
        return ProgramFault(
            {.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()},
            "there are two of this program");
      }
      RETURN_IF_ERROR(ShapeCheck(plan, role, program).Run());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
