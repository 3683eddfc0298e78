#include "proto/plan/check_islands.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/fault.h"
#include "proto/plan/groups.h"
#include "proto/plan/islands.h"
#include "proto/plan/meeting.h"
#include "proto/plan/mesh.h"
#include "proto/plan/operand.h"
#include "proto/plan/outer_change.h"
#include "proto/plan/precision.h"
#include "proto/plan/roles.h"
#include "proto/plan/trained.h"

namespace troupe {
namespace {

bool IsOuter(Instruction::Kind kind) {
  return kind == Instruction::OUTER_GRADIENT ||
         kind == Instruction::OUTER_REDUCE || kind == Instruction::OUTER_STEP;
}

// What is done to a unit in a step, in this order.
struct Wanted {
  Instruction::Kind kind = Instruction::STEP;
  absl::optional<Instruction::When> when;
};
std::vector<Wanted> WantedOf(const IslandsSpec& islands, int unit) {
  const Instruction::When when =
      WhenExchanged(islands, FragmentOf(islands, unit));
  const Wanted step = {.kind = Instruction::STEP, .when = absl::nullopt};
  const auto exchange = [](const Instruction::When& in) {
    return std::vector<Wanted>{{Instruction::OUTER_GRADIENT, in},
                               {Instruction::OUTER_REDUCE, in},
                               {Instruction::OUTER_STEP, in}};
  };
  std::vector<Wanted> wanted = exchange(when);
  // What is hidden behind a step begins before the unit is stepped.
  wanted.insert(wanted.begin() + (islands.overlap() > 0 ? 2 : 0), step);
  if (islands.overlap() == 0) return wanted;
  for (const Wanted& last : exchange(WhenEnded())) wanted.push_back(last);
  return wanted;
}

std::string WhenText(const Instruction::When& when) {
  if (when.every() == 0) return "in the last step";
  return absl::StrCat("in steps ", when.offset(), " after a multiple of ",
                      when.every(), when.last() ? ", and in the last one" : "");
}

bool Same(const Instruction::When& a, const Instruction::When& b) {
  return a.every() == b.every() && a.offset() == b.offset() &&
         a.last() == b.last();
}

absl::Status CheckMeshOf(const Plan& plan) {
  const int islands = IslandsOf(plan.job().parallelism());
  const int there = AxisSize(plan.mesh(), kIslandAxis);
  const bool first =
      islands == 1 || (plan.mesh().axes_size() > 0 &&
                       plan.mesh().axes(0).name() == kIslandAxis);
  if (there == islands && first) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the job has ", islands, " islands, and the mesh ", there,
                   first ? "" : ", not on its first axis"));
}

// Follows one program of a role.
class IslandProgram {
 public:
  IslandProgram(const Plan& plan, const Role& role, const Program& program)
      : plan_(plan),
        role_(role),
        program_(program),
        trains_(program.kind() == Program::TRAIN),
        place_{.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()} {
  }

  absl::Status Run() {
    for (const Instruction& instruction : program_.instructions()) {
      RETURN_IF_ERROR(Check(instruction));
    }
    if (!trains_ || !HasIslands(plan_)) return absl::OkStatus();
    if (!agrees_) {
      return ProgramFault(place_,
                          "islands never agree whether to stop: a "
                          "REDUCE_SCALARS over all of them is missing");
    }
    for (const Placement& placement : role_.placements()) {
      const int unit = placement.unit();
      if (TrainedElements(plan_.units(unit)) == 0) continue;
      const std::vector<Wanted> wanted = WantedOf(plan_.job().islands(), unit);
      const size_t done = done_[unit];
      if (done == wanted.size()) continue;
      return ProgramFault(
          place_,
          absl::StrCat("what is learned of unit ", unit, " is not exchanged: ",
                       Instruction::Kind_Name(wanted[done].kind),
                       " is missing"));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Check(const Instruction& instruction) {
    if (IsOuter(instruction.kind())) return CheckOuter(instruction);
    if (instruction.kind() == Instruction::STEP && HasIslands(plan_)) {
      RETURN_IF_ERROR(CheckNext(instruction));
    }
    const bool agrees = instruction.kind() == Instruction::REDUCE_SCALARS &&
                        instruction.has_when();
    if (agrees) return CheckAgrees(instruction);
    if (instruction.has_when()) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("runs only ", WhenText(instruction.when()),
                       ", and belongs to every step"));
    }
    const bool may_meet = !trains_ || !IsCollective(instruction.kind());
    if (may_meet || !SpansIslands(instruction)) return absl::OkStatus();
    return ProgramFault(
        place_, instruction,
        absl::StrCat("group ", plan_.groups(instruction.group()).name(),
                     " is of several islands, which train by themselves"));
  }

  bool SpansIslands(const Instruction& instruction) const {
    return Spans(plan_.mesh(), plan_.groups(instruction.group()), kIslandAxis);
  }

  static absl::Status Fault(const ProgramPlace& place,
                            const Instruction& instruction,
                            const Instruction::When& wanted) {
    return ProgramFault(
        place, instruction,
        absl::StrCat("runs ",
                     instruction.has_when() ? WhenText(instruction.when())
                                            : "in every step",
                     ", want ", WhenText(wanted)));
  }

  // It is the next that has to be done to its unit, in the steps in which it
  // has to be.
  absl::Status CheckNext(const Instruction& instruction) {
    const std::vector<Wanted> wanted =
        WantedOf(plan_.job().islands(), instruction.unit());
    const size_t done = done_[instruction.unit()]++;
    if (done >= wanted.size() || wanted[done].kind != instruction.kind()) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("comes where ",
                       done < wanted.size()
                           ? Instruction::Kind_Name(wanted[done].kind)
                           : "nothing more",
                       " of unit ", instruction.unit(), " should"));
    }
    const absl::optional<Instruction::When>& when = wanted[done].when;
    if (!when.has_value()) return absl::OkStatus();
    if (instruction.has_when() && Same(instruction.when(), *when)) {
      return absl::OkStatus();
    }
    return Fault(place_, instruction, *when);
  }

  // Once in a while the flags are summed over all ranks of all islands.
  absl::Status CheckAgrees(const Instruction& reduce) {
    if (!trains_ || !HasIslands(plan_) || agrees_) {
      return ProgramFault(place_, reduce,
                          agrees_ ? "islands have agreed before"
                                  : "there is nothing to agree on");
    }
    agrees_ = true;
    const Instruction::When wanted = WhenAgreed(plan_.job().islands());
    if (!Same(reduce.when(), wanted)) return Fault(place_, reduce, wanted);
    const Group& group = plan_.groups(reduce.group());
    if (GroupSize(plan_.mesh(), group) == MeshSize(plan_.mesh())) {
      return absl::OkStatus();
    }
    return ProgramFault(place_, reduce,
                        absl::StrCat("group ", group.name(),
                                     " is not of all ranks of all islands"));
  }

  absl::Status CheckOuter(const Instruction& outer) {
    if (!trains_ || !HasIslands(plan_)) {
      return ProgramFault(place_, outer,
                          trains_ ? "the job has one island"
                                  : "nothing is learned in this program");
    }
    RETURN_IF_ERROR(CheckNext(outer));
    RETURN_IF_ERROR(CheckOperands(outer));
    if (outer.kind() != Instruction::OUTER_REDUCE) return absl::OkStatus();
    const Group& group = plan_.groups(outer.group());
    if (IsAlong(group, kIslandAxis)) return absl::OkStatus();
    return ProgramFault(
        place_, outer,
        absl::StrCat("group ", group.name(),
                     " is not of the ranks at one place of all islands"));
  }

  absl::Status CheckOperands(const Instruction& outer) const {
    const bool master = HasMasterWeights(plan_.job().training());
    const Instruction::Part weights =
        master ? Instruction::MASTER : Instruction::WEIGHTS;
    bool right = false;
    switch (outer.kind()) {
      case Instruction::OUTER_GRADIENT:
        right = Has(outer, weights, /*writes=*/false) &&
                Has(outer, Instruction::MOMENTS, /*writes=*/false) &&
                Has(outer, Instruction::CHANGE, /*writes=*/true);
        break;
      case Instruction::OUTER_REDUCE:
        right = Has(outer, Instruction::CHANGE, /*writes=*/true);
        break;
      default:
        right = Has(outer, Instruction::CHANGE, /*writes=*/false) &&
                Has(outer, Instruction::MOMENTS, /*writes=*/true) &&
                Has(outer, weights, /*writes=*/true) &&
                Has(outer, Instruction::WEIGHTS, /*writes=*/true);
    }
    if (right) return absl::OkStatus();
    return ProgramFault(place_, outer,
                        "does not use its unit's weights, outer states and "
                        "change as it should");
  }

  // The unit's buffer, all of it, as large as it has to be.
  bool Has(const Instruction& outer, Instruction::Part part,
           bool writes) const {
    int found = 0;
    for (const Instruction::Operand& operand : outer.operands()) {
      if (operand.part() != part) continue;
      const Buffer& buffer = program_.buffers(operand.buffer());
      const BytesUsed used = BytesOf(operand, buffer);
      const bool fits =
          part != Instruction::CHANGE ||
          buffer.bytes() == LargestChange(plan_,
                                          *FindPlacement(role_, outer.unit()),
                                          place_.rank)
                                .bytes();
      if (!fits || buffer.unit() != outer.unit() || Writes(operand) != writes ||
          used.begin != 0 || used.end != buffer.bytes()) {
        return false;
      }
      ++found;
    }
    return found == 1;
  }

  const Plan& plan_;
  const Role& role_;
  const Program& program_;
  const bool trains_;
  const ProgramPlace place_;  // of the role's first rank
  bool agrees_ = false;
  std::map<int, size_t> done_;  // by unit: of what is wanted
};

// Nothing of a unit is the same on other islands, or summed over them.
absl::Status CheckIslandPlacements(const Plan& plan, const Role& role) {
  for (const Placement& placement : role.placements()) {
    for (const Placement::Part& part : placement.parts()) {
      for (const int group : {part.has_summed() ? part.summed() : -1,
                              part.has_shared() ? part.shared() : -1,
                              part.has_dealt() ? part.dealt() : -1}) {
        if (group < 0 || !Spans(plan.mesh(), plan.groups(group), kIslandAxis)) {
          continue;
        }
        return absl::FailedPreconditionError(
            absl::StrCat("role ", RoleText(role), ": unit ", placement.unit(),
                         " is shared over group ", plan.groups(group).name(),
                         ", which is of several islands"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckIslands(const Plan& plan) {
  RETURN_IF_ERROR(CheckMeshOf(plan));
  for (const Role& role : plan.roles()) {
    RETURN_IF_ERROR(CheckIslandPlacements(plan, role));
    for (const Program& program : role.programs()) {
      RETURN_IF_ERROR(IslandProgram(plan, role, program).Run());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
