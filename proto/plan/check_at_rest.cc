#include "proto/plan/check_at_rest.h"

#include <algorithm>
#include <compare>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/fault.h"
#include "proto/plan/groups.h"
#include "proto/plan/part_state.h"
#include "proto/plan/program_text.h"
#include "proto/plan/resting_buffers.h"
#include "proto/plan/roles.h"
#include "proto/plan/trained.h"

namespace troupe {
namespace {

// All of its ranks deal it over each other.
absl::Status CheckDealing(const Plan& plan, const Role& role) {
  const int rank = FirstRankOf(plan.mesh(), role);
  for (const Placement& placement : role.placements()) {
    for (int p = 0; p < placement.parts_size(); ++p) {
      if (!placement.parts(p).has_dealt()) continue;
      const int group = placement.parts(p).dealt();
      const Box members = BoxOf(plan.mesh(), plan.groups(group), rank);
      int other = -1;  // the first that does not
      for (const Role& of : plan.roles()) {
        const int member =
            members.empty() ? -1 : FirstRankIn(plan.mesh(), of, members);
        const Placement* const there = FindPlacement(of, placement.unit());
        const bool deals = there != nullptr && there->parts(p).has_dealt() &&
                           there->parts(p).dealt() == group;
        if (member < 0 || deals) continue;
        other = other < 0 ? member : std::min(other, member);
      }
      if (other < 0) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "role ", RoleText(role), ": part ", p, " of unit ", placement.unit(),
          " is dealt over group ", plan.groups(group).name(),
          ", but not by rank ", other, ", which is in it"));
    }
  }
  return absl::OkStatus();
}

// Ranks of a role have the same memory, so their slices are of one size.
absl::Status CheckWeightsOfRoles(const Plan& plan) {
  const std::vector<int> roles = RoleIndices(plan);
  for (const Group& group : plan.groups()) {
    if (group.weights().empty()) continue;
    std::map<int, std::pair<int, int>> first;  // by role: weight, and its rank
    for (int rank = 0; rank < static_cast<int>(roles.size()); ++rank) {
      if (GroupNumber(plan.mesh(), group, rank) < 0) continue;
      const int weight = group.weights(PieceOf(plan.mesh(), group, rank).index);
      const auto [of, is_new] = first.try_emplace(roles[rank], weight, rank);
      if (is_new || of->second.first == weight) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "role ", RoleText(plan.roles(roles[rank])), ": in group ",
          group.name(), " rank ", rank, " has weight ", weight, " and rank ",
          of->second.second, " ", of->second.first));
    }
  }
  return absl::OkStatus();
}

// Follows one program of a role: which buffers are whole, and what has become
// of gradients.
class AtRestCheck {
 public:
  AtRestCheck(const Plan& plan, const Role& role, const Program& program)
      : plan_(plan),
        role_(role),
        place_{.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()},
        program_(program),
        values_(RestingBuffers(program)) {}

  absl::Status Run() {
    for (const Buffer& buffer : program_.buffers()) {
      RETURN_IF_ERROR(CheckBuffer(buffer));
    }
    for (const Instruction& instruction : program_.instructions()) {
      RETURN_IF_ERROR(Check(instruction));
    }
    for (const auto& [sums, scattered] : added_) {
      if (scattered) continue;
      return ProgramFault(place_,
                          absl::StrCat("gradients of unit ",
                                       program_.buffers(sums.buffer).unit(),
                                       " are not scattered over group ",
                                       plan_.groups(sums.group).name(),
                                       ": SCATTER_GRADS is missing"));
    }
    return absl::OkStatus();
  }

 private:
  // Of a buffer, what is dealt over a group.
  struct DealtOf {
    int buffer = 0;
    int group = 0;
    auto operator<=>(const DealtOf&) const = default;
  };

  // The buffer in which the value of an operand rests: what holds of one copy
  // holds of all.
  int ValueOf(const Instruction::Operand& operand) const {
    return values_[operand.buffer()];
  }

  // Null: each rank has all of the unit.
  const Placement* Dealt(int unit) const {
    const Placement* const placement = FindPlacement(role_, unit);
    const bool dealt = placement != nullptr && IsDealt(*placement);
    return dealt ? placement : nullptr;
  }

  // The groups over which its parameters are dealt, of what is trained or of
  // all.
  std::vector<int> GroupsOf(int unit, DealtParts of) const {
    std::vector<int> groups;
    const Placement* const dealt = Dealt(unit);
    if (dealt == nullptr) return groups;
    for (const int part : FirstDealtParts(plan_, *dealt, of)) {
      groups.push_back(dealt->parts(part).dealt());
    }
    return groups;
  }

  // Elements that a buffer of the kind has, slice or not.
  int64_t ElementsOf(const Buffer& buffer, const Placement& placement) const {
    const Unit& unit = plan_.units(buffer.unit());
    switch (buffer.kind()) {
      case Buffer::UNSHARDED_PARAMETERS:
        return DealtElements(plan_, placement, DealtParts::kAll);
      case Buffer::UNSHARDED_GRADIENTS:
        return DealtElements(plan_, placement, DealtParts::kTrained);
      case Buffer::OPTIMIZER_STATE:
        return LargestStateAtRest(plan_, placement, place_.rank);
      case Buffer::PARAMETERS:
        return buffer.slice()
                   ? LargestTrainedAtRest(plan_, placement, place_.rank) +
                         LargestFrozenAtRest(plan_, placement, place_.rank)
                   : unit.flat_elements();
      default:  // of what is trained
        return buffer.slice()
                   ? LargestTrainedAtRest(plan_, placement, place_.rank)
                   : TrainedElements(unit);
    }
  }

  absl::Status CheckBuffer(const Buffer& buffer) const {
    const int64_t each =
        buffer.has_unit()
            ? BytesOfFlat(plan_.units(buffer.unit()), buffer.kind())
            : 0;
    if (each == 0 && !buffer.slice()) return absl::OkStatus();
    const Placement* const dealt =
        buffer.has_unit() ? Dealt(buffer.unit()) : nullptr;
    const bool state = buffer.kind() == Buffer::MASTER_WEIGHTS ||
                       buffer.kind() == Buffer::OPTIMIZER_STATE;
    const bool unsharded = IsUnsharded(buffer);
    const std::string what = absl::StrCat(Buffer::Kind_Name(buffer.kind()),
                                          " of unit ", buffer.unit());
    if (each == 0 || (unsharded && buffer.slice())) {
      return ProgramFault(
          place_, absl::StrCat(what, " is a slice, which it cannot be"));
    }
    const bool fits = dealt == nullptr ? !buffer.slice()
                      : state          ? buffer.slice()
                                       : true;
    if (!fits) {
      return ProgramFault(
          place_,
          absl::StrCat(what, buffer.slice() ? " is a slice" : " is whole",
                       dealt == nullptr ? ", and the unit is not dealt"
                                        : ", and the unit rests in slices"));
    }
    const Placement* const placement = FindPlacement(role_, buffer.unit());
    if (placement == nullptr) {
      return ProgramFault(place_, absl::StrCat(what, " is not of its role"));
    }
    const int64_t elements = ElementsOf(buffer, *placement);
    if (buffer.bytes() == elements * each) return absl::OkStatus();
    return ProgramFault(
        place_, absl::StrCat(what, " has ", buffer.bytes(), " bytes, where ",
                             elements * each, " are needed"));
  }

  absl::Status Check(const Instruction& instruction) {
    switch (instruction.kind()) {
      case Instruction::FORWARD:
      case Instruction::RECOMPUTE:
      case Instruction::BACKWARD_INPUT:
        return CheckWhole(instruction);
      case Instruction::BACKWARD_WEIGHT:
        return CheckAdds(instruction);
      case Instruction::GATHER_PARAMETERS:
        return CheckGather(instruction);
      case Instruction::SCATTER_GRADS:
        return CheckScatter(instruction);
      case Instruction::REDUCE_GRADS:
      case Instruction::GRAD_NORM:
      case Instruction::STEP:
        return CheckSummed(instruction);
      default:
        return absl::OkStatus();
    }
  }

  // Where what is dealt is in a buffer of its own, a pass has that, and all
  // else where it rests: both where the unit has both.
  absl::Status CheckRest(const Instruction& pass, Instruction::Part part,
                         DealtParts of) const {
    const Buffer* apart = nullptr;
    const Buffer* slice = nullptr;
    for (const Instruction::Operand& operand : pass.operands()) {
      if (operand.part() != part) continue;
      const Buffer& buffer = program_.buffers(operand.buffer());
      if (buffer.slice()) slice = &buffer;
      if (IsUnsharded(buffer)) apart = &buffer;
    }
    const Buffer* const either = apart != nullptr ? apart : slice;
    if (either == nullptr) return absl::OkStatus();
    const Placement* const placement = Dealt(either->unit());
    const bool is_dealt =
        placement != nullptr && DealtElements(plan_, *placement, of) > 0;
    const bool keeps_some =
        placement != nullptr && KeepsSome(plan_, *placement, of);
    if (slice != nullptr && !keeps_some) {
      return ProgramFault(place_, pass,
                          absl::StrCat("uses a slice of unit ", slice->unit(),
                                       " as if it were whole"));
    }
    if (is_dealt == (apart != nullptr) && keeps_some == (slice != nullptr)) {
      return absl::OkStatus();
    }
    return ProgramFault(
        place_, pass,
        absl::StrCat("leaves out the parts of unit ", either->unit(),
                     slice == nullptr ? " that are not dealt, which are where "
                                        "they rest"
                                      : " that are dealt"));
  }

  static bool IsUnsharded(const Buffer& buffer) {
    return buffer.kind() == Buffer::UNSHARDED_PARAMETERS ||
           buffer.kind() == Buffer::UNSHARDED_GRADIENTS;
  }

  absl::Status CheckWhole(const Instruction& pass) const {
    for (const Instruction::Operand& operand : pass.operands()) {
      if (operand.part() != Instruction::WEIGHTS &&
          operand.part() != Instruction::TIED_WEIGHTS) {
        continue;
      }
      RETURN_IF_ERROR(CheckRest(pass, operand.part(), DealtParts::kAll));
      const Buffer& buffer = program_.buffers(operand.buffer());
      if (buffer.slice()) continue;
      for (const int group : GroupsOf(buffer.unit(), DealtParts::kAll)) {
        if (whole_.count({ValueOf(operand), group}) > 0) continue;
        return ProgramFault(
            place_, pass,
            absl::StrCat("the parameters of unit ", buffer.unit(),
                         " are not whole: no GATHER_PARAMETERS over group ",
                         plan_.groups(group).name(), " comes before it"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckAdds(const Instruction& pass) {
    for (const Instruction::Operand& operand : pass.operands()) {
      if (operand.part() != Instruction::WEIGHT_GRADIENTS &&
          operand.part() != Instruction::TIED_GRADIENTS) {
        continue;
      }
      RETURN_IF_ERROR(CheckRest(pass, operand.part(), DealtParts::kTrained));
      const Buffer& buffer = program_.buffers(operand.buffer());
      if (buffer.slice()) continue;
      for (const int group : GroupsOf(buffer.unit(), DealtParts::kTrained)) {
        const auto [at, is_new] =
            added_.emplace(DealtOf{ValueOf(operand), group}, false);
        if (at->second) {
          return ProgramFault(
              place_, pass,
              absl::StrCat("adds to gradients of unit ", buffer.unit(),
                           " after they were scattered"));
        }
      }
    }
    return absl::OkStatus();
  }

  // Whether they are a unit's whole buffer, and its slice where that, of the
  // kind, is another buffer.
  static bool AreOf(int unit, const Buffer* whole, const Buffer* slice,
                    Buffer::Kind rests) {
    if (whole == nullptr || whole->unit() != unit || whole->slice()) {
      return false;
    }
    const bool apart = whole->kind() != rests;
    if (!apart || slice == nullptr) return apart == (slice != nullptr);
    return slice->slice() && slice->unit() == unit && slice->kind() == rests;
  }

  absl::Status CheckGather(const Instruction& gather) {
    RETURN_IF_ERROR(CheckGroup(gather));
    const Buffer* const slice =
        Find(gather, Instruction::SLICE, {Instruction::READ});
    const Buffer* const whole = Find(gather, Instruction::WEIGHTS,
                                     {Instruction::WRITE, Instruction::ADD});
    if (!AreOf(gather.unit(), whole, slice, Buffer::PARAMETERS)) {
      return ProgramFault(place_, gather,
                          "does not make its unit's parameters whole");
    }
    const int group = GroupOf(gather);
    for (const Instruction::Operand& operand : gather.operands()) {
      if (operand.part() != Instruction::WEIGHTS) continue;
      // What another gather has made whole there is lost.
      if (operand.access() == Instruction::WRITE) {
        ForgetWhole([&](const DealtOf& whole) {
          return whole.buffer == ValueOf(operand);
        });
      }
      whole_.insert({ValueOf(operand), group});
    }
    return absl::OkStatus();
  }

  absl::Status CheckScatter(const Instruction& scatter) {
    RETURN_IF_ERROR(CheckGroup(scatter));
    const int unit = scatter.unit();
    const Buffer* const slice = Find(scatter, Instruction::SLICE,
                                     {Instruction::WRITE, Instruction::ADD});
    const Buffer* const whole =
        Find(scatter, Instruction::WEIGHT_GRADIENTS, {Instruction::ADD});
    if (!AreOf(unit, whole, slice, Buffer::PARAMETER_GRADIENTS)) {
      return ProgramFault(place_, scatter,
                          "does not scatter its unit's gradients");
    }
    if (used_.count(unit) > 0) {
      return ProgramFault(
          place_, scatter,
          absl::StrCat("the gradients of unit ", unit, " were used before"));
    }
    for (const Instruction::Operand& operand : scatter.operands()) {
      if (operand.part() != Instruction::WEIGHT_GRADIENTS) continue;
      const auto at = added_.find({ValueOf(operand), GroupOf(scatter)});
      if (at == added_.end()) {
        return ProgramFault(place_, scatter,
                            "nothing was added to these gradients");
      }
      if (at->second)
        return ProgramFault(place_, scatter, "they were scattered before");
      at->second = true;
    }
    return absl::OkStatus();
  }

  // Those that use a unit's gradients use all that was added to them.
  absl::Status CheckSummed(const Instruction& instruction) {
    const int unit = instruction.unit();
    const bool several = instruction.unit_count() > 1;
    for (int k = 0; several && k < instruction.unit_count(); ++k) {
      if (Dealt(unit + k) == nullptr) continue;
      return ProgramFault(place_, instruction,
                          absl::StrCat("slices of unit ", unit + k,
                                       " are no one range with others"));
    }
    if (Dealt(unit) == nullptr) return absl::OkStatus();
    for (const auto& [sums, scattered] : added_) {
      if (scattered || program_.buffers(sums.buffer).unit() != unit) continue;
      return ProgramFault(place_, instruction,
                          absl::StrCat("the gradients of unit ", unit,
                                       " are not scattered yet"));
    }
    used_.insert(unit);
    if (instruction.kind() != Instruction::STEP) return absl::OkStatus();
    ForgetWhole([&](const DealtOf& whole) {
      return program_.buffers(whole.buffer).unit() == unit;
    });
    return absl::OkStatus();
  }

  template <typename Test>
  void ForgetWhole(Test test) {
    for (auto at = whole_.begin(); at != whole_.end();) {
      at = test(*at) ? whole_.erase(at) : std::next(at);
    }
  }

  // Over which the parts are dealt that a gather or scatter is of. REQUIRES
  // CheckGroup.
  int GroupOf(const Instruction& instruction) const {
    return Dealt(instruction.unit())->parts(instruction.part()).dealt();
  }

  absl::Status CheckGroup(const Instruction& instruction) {
    const Placement* const dealt = Dealt(instruction.unit());
    if (dealt == nullptr)
      return ProgramFault(place_, instruction, "its unit is not dealt");
    const std::vector<int> firsts = FirstDealtParts(
        plan_, *dealt,
        instruction.kind() == Instruction::SCATTER_GRADS ? DealtParts::kTrained
                                                         : DealtParts::kAll);
    if (std::count(firsts.begin(), firsts.end(), instruction.part()) == 0) {
      return ProgramFault(
          place_, instruction,
          absl::StrCat("part ", instruction.part(),
                       " of its unit is not the first that is dealt over "
                       "some ranks"));
    }
    const int over_index = GroupOf(instruction);
    const Group& with = plan_.groups(instruction.group());
    const Group& over = plan_.groups(over_index);
    const auto [same, is_new] =
        same_ranks_.try_emplace({instruction.group(), over_index});
    if (is_new) {
      same->second = BoxOf(plan_.mesh(), with, place_.rank) ==
                     BoxOf(plan_.mesh(), over, place_.rank);
    }
    if (same->second) return absl::OkStatus();
    return ProgramFault(
        place_, instruction,
        absl::StrCat("group ", with.name(), " has other ranks than ",
                     over.name(), ", over which its part is dealt"));
  }

  // That of the part, where one of these is done with it.
  const Buffer* Find(
      const Instruction& instruction, Instruction::Part part,
      std::initializer_list<Instruction::Access> accesses) const {
    for (const Instruction::Operand& operand : instruction.operands()) {
      if (operand.part() != part ||
          std::count(accesses.begin(), accesses.end(), operand.access()) == 0) {
        continue;
      }
      return &program_.buffers(operand.buffer());
    }
    return nullptr;
  }

  const Plan& plan_;
  const Role& role_;
  const ProgramPlace place_;  // of the role's first rank
  const Program& program_;
  const std::vector<int> values_;  // by buffer
  std::set<DealtOf> whole_;        // of parameters: gathered
  std::map<DealtOf, bool> added_;  // of gradients: whether they are scattered
  // By two groups: whether the rank is with the same ranks in them.
  std::map<std::pair<int, int>, bool> same_ranks_;
  std::set<int> used_;  // units whose gradients were summed or stepped
};

}  // namespace

absl::Status CheckAtRest(const Plan& plan) {
  RETURN_IF_ERROR(CheckWeightsOfRoles(plan));
  for (const Role& role : plan.roles()) {
    RETURN_IF_ERROR(CheckDealing(plan, role));
  }
  for (const Role& role : plan.roles()) {
    for (const Program& program : role.programs()) {
      RETURN_IF_ERROR(AtRestCheck(plan, role, program).Run());
    }
  }
  return absl::OkStatus();
}

}  // namespace troupe
