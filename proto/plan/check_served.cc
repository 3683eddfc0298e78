#include "proto/plan/check_served.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/fault.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"
#include "proto/plan/operand.h"
#include "proto/plan/part_state.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "proto/plan/served.h"
#include "proto/plan/trained.h"

namespace troupe {
namespace {

// Whether it has micro-batches to compute.
bool RunsNone(const Plan& plan, int rank) {
  const int place = CoordinateOn(plan.mesh(), kReplicaAxis, rank);
  const auto& counts = plan.derived().replica_micro_batches();
  return place < counts.size() && counts[place] == 0;
}

// All ranks that differ from this one in their places on "data" only.
Box AllOnData(const Mesh& mesh, int rank) {
  Box box;
  const std::vector<int> places = Coordinates(mesh, rank);
  for (int i = 0; i < mesh.axes_size(); ++i) {
    std::vector<int>& on_axis = box.emplace_back();
    if (mesh.axes(i).name() != kReplicaAxis) {
      on_axis.push_back(places[i]);
      continue;
    }
    for (int p = 0; p < mesh.axes(i).size(); ++p) on_axis.push_back(p);
  }
  return box;
}

// All replicas and servers push and pull, and servers are the ranks that
// compute nothing.
absl::Status CheckMembers(const Plan& plan, const Placement& placement,
                          int rank) {
  const Mesh& mesh = plan.mesh();
  const auto fault = [&](absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", rank, ": unit ", placement.unit(), " is served, and ", what));
  };
  const Group& group = plan.groups(placement.served().group());
  const Group& servers = plan.groups(placement.served().servers());
  const Box all = AllOnData(mesh, rank);
  if (BoxOf(mesh, group, rank) != all) {
    return fault(absl::StrCat("group ", group.name(),
                              " is not of all of its replicas and servers"));
  }
  if (GroupSize(mesh, servers) != plan.job().parallelism().servers()) {
    return fault(absl::StrCat("group ", servers.name(), " has ",
                              GroupSize(mesh, servers), " servers of ",
                              plan.job().parallelism().servers()));
  }
  std::set<int> numbers;
  for (const int member : RanksIn(mesh, all)) {
    const int number = GroupNumber(mesh, servers, member);
    if (number >= 0) numbers.insert(number);
    if ((number >= 0) == RunsNone(plan, member)) continue;
    return fault(absl::StrCat(
        "rank ", member,
        number >= 0 ? " serves it, but has micro-batches to compute"
                    : " has none to compute, but does not serve it"));
  }
  if (numbers.size() != 1) {
    return fault("its servers are not one group");
  }
  const bool dealt = std::all_of(
      placement.parts().begin(), placement.parts().end(),
      [&](const Placement::Part& part) {
        return part.has_dealt() && part.dealt() == placement.served().servers();
      });
  if (RunsNone(plan, rank) ? dealt : !IsDealt(placement)) {
    return absl::OkStatus();
  }
  return fault(RunsNone(plan, rank) ? "does not rest in slices over its servers"
                                    : "rests on a replica, too");
}

// Follows one program of a role.
class ServedProgram {
 public:
  ServedProgram(const Plan& plan, const Role& role, const Program& program)
      : plan_(plan),
        role_(role),
        place_{.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()},
        program_(program),
        serves_(RunsNone(plan, place_.rank)) {}

  absl::Status Run() {
    for (const Instruction& instruction : program_.instructions()) {
      RETURN_IF_ERROR(Check(instruction));
    }
    if (program_.kind() != Program::TRAIN) return absl::OkStatus();
    for (const Placement& placement : role_.placements()) {
      const int unit = placement.unit();
      if (TrainedElements(plan_.units(unit)) == 0) continue;
      if (pushed_.count(unit) > 0) continue;
      return ProgramFault(place_, absl::StrCat("gradients of unit ", unit,
                                               " are not pushed: PUSH is "
                                               "missing"));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Check(const Instruction& instruction) {
    switch (instruction.kind()) {
      case Instruction::FORWARD:
      case Instruction::RECOMPUTE:
      case Instruction::BACKWARD_INPUT:
      case Instruction::BACKWARD_WEIGHT:
        return CheckPass(instruction);
      case Instruction::PUSH:
        return CheckPush(instruction);
      case Instruction::PULL:
        return CheckPull(instruction);
      case Instruction::REDUCE_GRADS:
      case Instruction::GRAD_NORM:
      case Instruction::STEP:
      case Instruction::SNAPSHOT:
      case Instruction::KEEP:
        return CheckOfServer(instruction);
      default:
        return absl::OkStatus();
    }
  }

  absl::Status CheckPass(const Instruction& pass) {
    if (serves_) {
      return ProgramFault(place_, pass, "is of a server, which computes none");
    }
    for (const Instruction::Operand& operand : pass.operands()) {
      const int unit = program_.buffers(operand.buffer()).unit();
      const bool weights = operand.part() == Instruction::WEIGHTS ||
                           operand.part() == Instruction::TIED_WEIGHTS;
      if (weights && pulled_.count(unit) == 0) {
        return ProgramFault(
            place_, pass,
            absl::StrCat("the parameters of unit ", unit,
                         " are of an earlier step: no PULL comes before it"));
      }
      if (operand.part() != Instruction::WEIGHT_GRADIENTS &&
          operand.part() != Instruction::TIED_GRADIENTS) {
        continue;
      }
      added_.insert(unit);
      if (pushed_.count(unit) == 0) continue;
      return ProgramFault(place_, pass,
                          absl::StrCat("adds to gradients of unit ", unit,
                                       " after they were pushed"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckPush(const Instruction& push) {
    RETURN_IF_ERROR(CheckMeets(push));
    const int unit = push.unit();
    const int64_t width = BytesOfElement(GradientsType(plan_.units(unit)));
    const Placement& placement = *FindPlacement(role_, unit);
    const bool right =
        serves_ ? Has(push, Instruction::SLICE, Instruction::WRITE,
                      Buffer::PARAMETER_GRADIENTS) &&
                      PushedBytes(push) == ReplicasServed(plan_, placement) *
                                               PushedStride(plan_, placement) *
                                               width
                : Has(push, Instruction::WEIGHT_GRADIENTS, Instruction::READ,
                      Buffer::PARAMETER_GRADIENTS);
    if (!right) {
      return ProgramFault(place_, push,
                          serves_ ? "has no room for what replicas push, or "
                                    "sums it elsewhere than in its slice"
                                  : "does not push its unit's gradients");
    }
    if (!serves_ && added_.count(unit) == 0) {
      return ProgramFault(place_, push, "nothing was added to these gradients");
    }
    if (pushed_.insert(unit).second) return absl::OkStatus();
    return ProgramFault(place_, push, "they were pushed before");
  }

  absl::Status CheckPull(const Instruction& pull) {
    RETURN_IF_ERROR(CheckMeets(pull));
    const bool right = serves_ ? Has(pull, Instruction::SLICE,
                                     Instruction::READ, Buffer::PARAMETERS)
                               : Has(pull, Instruction::WEIGHTS,
                                     Instruction::WRITE, Buffer::PARAMETERS);
    if (!right) {
      return ProgramFault(place_, pull,
                          serves_ ? "does not give its slice of parameters"
                                  : "does not get its unit's parameters");
    }
    if (stepped_.count(pull.unit()) > 0) {
      return ProgramFault(place_, pull,
                          "gives parameters that its STEP has changed, where "
                          "replicas compute with those from before");
    }
    pulled_.insert(pull.unit());
    return absl::OkStatus();
  }

  absl::Status CheckOfServer(const Instruction& instruction) {
    const int unit = instruction.unit();
    if (!serves_) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("a replica keeps no state of unit ", unit));
    }
    const bool of_gradients = program_.kind() == Program::TRAIN;
    if (of_gradients && pushed_.count(unit) == 0) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("the gradients of unit ", unit, " are not pushed yet"));
    }
    if (instruction.kind() == Instruction::STEP) stepped_.insert(unit);
    return absl::OkStatus();
  }

  // With the ranks that its unit says.
  absl::Status CheckMeets(const Instruction& instruction) const {
    const Group& with = plan_.groups(instruction.group());
    const Placement& placement = *FindPlacement(role_, instruction.unit());
    const Group& all = plan_.groups(placement.served().group());
    if (&with == &all || BoxOf(plan_.mesh(), with, place_.rank) ==
                             BoxOf(plan_.mesh(), all, place_.rank)) {
      return absl::OkStatus();
    }
    return ProgramFault(
        place_, instruction,
        absl::StrCat("group ", with.name(), " has other ranks than ",
                     all.name(), ", its unit's replicas and servers"));
  }

  // All of the unit's buffer of the kind, which is a slice on a server.
  bool Has(const Instruction& instruction, Instruction::Part part,
           Instruction::Access access, Buffer::Kind kind) const {
    int found = 0;
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (operand.part() != part) continue;
      const Buffer& buffer = program_.buffers(operand.buffer());
      const BytesUsed used = BytesOf(operand, buffer);
      const bool right = operand.access() == access && buffer.kind() == kind &&
                         buffer.unit() == instruction.unit() &&
                         buffer.slice() == serves_ && used.begin == 0 &&
                         used.end == buffer.bytes();
      if (!right) return false;
      ++found;
    }
    return found == 1;
  }

  int64_t PushedBytes(const Instruction& push) const {
    int64_t bytes = 0;
    for (const Instruction::Operand& operand : push.operands()) {
      if (operand.part() != Instruction::PUSHED) continue;
      if (operand.access() != Instruction::WRITE) return 0;
      bytes += program_.buffers(operand.buffer()).bytes();
    }
    return bytes;
  }

  const Plan& plan_;
  const Role& role_;
  const ProgramPlace place_;  // of the role's first rank
  const Program& program_;
  const bool serves_;
  std::set<int> pulled_;  // units
  std::set<int> added_;   // to whose gradients
  std::set<int> pushed_;
  std::set<int> stepped_;
};

absl::Status CheckUnserved(const Plan& plan) {
  for (const Role& role : plan.roles()) {
    for (const Placement& placement : role.placements()) {
      if (!placement.has_served()) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("role ", RoleText(role), ": unit ", placement.unit(),
                       " is served, and the job has no servers"));
    }
    for (const Program& program : role.programs()) {
      for (const Instruction& instruction : program.instructions()) {
        if (instruction.kind() != Instruction::PUSH &&
            instruction.kind() != Instruction::PULL) {
          continue;
        }
        return ProgramFault(
            {.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()},
            instruction, "the job has no servers");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckServed(const Plan& plan) {
  if (!HasServers(plan)) return CheckUnserved(plan);
  for (const Role& role : plan.roles()) {
    const int rank = FirstRankOf(plan.mesh(), role);
    std::set<std::string> answered;
    for (const Placement& placement : role.placements()) {
      if (!placement.has_served()) {
        return absl::FailedPreconditionError(
            absl::StrCat("role ", RoleText(role), ": unit ", placement.unit(),
                         " is not served, and the job has servers"));
      }
      std::string question = placement.served().ShortDebugString();
      for (const Placement::Part& part : placement.parts()) {
        absl::StrAppend(&question, "/", part.has_dealt() ? part.dealt() : -1);
      }
      if (!answered.insert(question).second) continue;
      RETURN_IF_ERROR(CheckMembers(plan, placement, rank));
    }
    for (const Program& program : role.programs()) {
      const bool turns =
          plan.derived().takes_turns() && program.kind() == Program::TRAIN;
      if (turns) continue;  // check_turns.h
      RETURN_IF_ERROR(ServedProgram(plan, role, program).Run());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
