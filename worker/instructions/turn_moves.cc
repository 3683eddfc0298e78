#include "worker/instructions/turn_moves.h"

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/served.h"
#include "worker/instructions/run_collective.h"

namespace troupe {
namespace {

struct OfUnit {
  const Placement& placement;
  char* memory = nullptr;
  DType element;
};

absl::Status ForEachUnit(
    const Call& call, Instruction::Part part,
    const std::function<absl::Status(const OfUnit& of)>& move) {
  const RankState& state = call.state;
  for (const Instruction::Operand& operand : call.instruction.operands()) {
    if (operand.part() != part) continue;
    const Buffer& buffer = call.program.buffers(operand.buffer());
    const int unit = buffer.unit();
    RETURN_IF_ERROR(move({.placement = state.PlacementOf(unit),
                          .memory = MemoryOf(call, buffer),
                          .element = buffer.kind() == Buffer::PARAMETERS
                                         ? state.TypeOfParameters(unit)
                                         : state.TypeOfGradients(unit)}));
  }
  return absl::OkStatus();
}

absl::Status Move(const Call& call, TurnMove move, const CommBuffer& buffer,
                  int member, const std::string& name) {
  Communicator& with = *call.state.communicators.at(call.instruction.group());
  const CommOptions options = CommOptionsOf(call, name);
  return move == TurnMove::kSend ? with.Send(buffer, member, options)
                                 : with.Recv(buffer, member, options);
}

std::string NameOf(const std::string& what, const OfUnit& of) {
  return absl::StrCat(what, " of unit ", of.placement.unit());
}

}  // namespace

absl::Status MoveWithServers(const Call& call, Instruction::Part part,
                             TurnMove move, const std::string& what) {
  const Plan& plan = *call.state.plan;
  return ForEachUnit(call, part, [&](const OfUnit& of) -> absl::Status {
    const std::vector<ServedMember> members =
        ServedMembers(plan, of.placement, call.state.rank());
    for (size_t m = 0; m < members.size(); ++m) {
      const Range& slice = members[m].slice;
      if (!members[m].is_server || slice.size() == 0) continue;
      RETURN_IF_ERROR(
          Move(call, move,
               {.data = of.memory + slice.begin * DTypeBytes(of.element),
                .elements = slice.size(),
                .element = of.element},
               static_cast<int>(m), NameOf(what, of)));
    }
    return absl::OkStatus();
  });
}

absl::Status MoveWithReplica(const Call& call, Instruction::Part part,
                             TurnMove move, int replica,
                             const std::string& what) {
  const Plan& plan = *call.state.plan;
  return ForEachUnit(call, part, [&](const OfUnit& of) -> absl::Status {
    const int64_t own =
        ServedSlice(plan, of.placement, call.state.rank()).size();
    if (own == 0) return absl::OkStatus();
    // The group is all of "data", in its order (proto/plan/check_served.h).
    return Move(call, move,
                {.data = of.memory, .elements = own, .element = of.element},
                replica, NameOf(what, of));
  });
}

TurnLog::Asked AskedOf(const Call& call) {
  return {.stop = call.state.step.stop, .save = call.state.step.save};
}

}  // namespace troupe
