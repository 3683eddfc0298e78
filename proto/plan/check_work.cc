#include "proto/plan/check_work.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/fault.h"
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "proto/plan/index.h"
#include "proto/plan/mesh.h"
#include "proto/plan/optimizer_rows.h"
#include "proto/plan/program_text.h"
#include "proto/plan/roles.h"
#include "proto/plan/segment_use.h"
#include "proto/plan/trained.h"
#include "proto/plan/unit_passes.h"

namespace troupe {
namespace {

std::string Times(Instruction::Kind kind, int unit, int count) {
  return absl::StrCat(
      Instruction::Kind_Name(kind), " of unit ", unit, " is ",
      count == 0 ? "missing" : absl::StrCat("there ", count, " times"));
}

// The roles that hold a unit, and each one's ranks by their places on the
// pipeline.
struct Home {
  std::vector<int> roles;
  std::set<int> places;
};

std::vector<Home> HomesOf(const Plan& plan) {
  std::vector<Home> homes(plan.units_size());
  for (int i = 0; i < plan.roles_size(); ++i) {
    const Role& role = plan.roles(i);
    const int first =
        CoordinateOn(plan.mesh(), "pipeline", FirstRankOf(plan.mesh(), role));
    const int end = NamesPlaceOn(role, "pipeline")
                        ? first + 1
                        : AxisSize(plan.mesh(), "pipeline");
    for (const Placement& placement : role.placements()) {
      Home& home = homes[placement.unit()];
      home.roles.push_back(i);
      for (int p = first; p < end; ++p) home.places.insert(p);
    }
  }
  return homes;
}

// Those that have the same of a part of a unit as the rank, itself too; `sums`:
// or a summand of it. Before it is dealt.
Box Alike(const Plan& plan, const Home& home, const Unit::Part& part, int rank,
          bool sums) {
  Box alike;
  const std::vector<int> places = Coordinates(plan.mesh(), rank);
  for (int i = 0; i < plan.mesh().axes_size(); ++i) {
    const Axis& axis = plan.mesh().axes(i);
    int copies = 1;
    for (const Unit::Part::Share& share : part.shares()) {
      if (share.axis() != axis.name() || share.copies() < 1) continue;
      if (!sums || share.summed()) copies = share.copies();
    }
    std::vector<int>& on_axis = alike.emplace_back();
    if (axis.name() == "pipeline") {
      on_axis.assign(home.places.begin(), home.places.end());
      continue;
    }
    const int first = places[i] / copies * copies;
    const int end = std::min(axis.size(), first + copies);
    for (int p = first; p < end; ++p) on_axis.push_back(p);
  }
  return alike;
}

// The ranks with which a role's ranks sum, or share, a part of a unit.
struct Company {
  int unit = 0;
  int part = 0;
  bool sums = false;
  absl::optional<int> group;  // none: each with itself
};

// Of those, the ranks that have the same slice: along each axis, the place of
// each in its group says so. What servers keep, replicas do not. Nothing: the
// part is dealt over others, too, or over some of their slices.
absl::optional<Box> AlikeAtRest(const Plan& plan, const Placement& placement,
                                const Box& alike, const Company& company,
                                int rank) {
  const Placement::Part& part = placement.parts(company.part);
  if (KeepsNoState(placement)) {
    Box alone;
    for (const int place : Coordinates(plan.mesh(), rank)) {
      alone.push_back({place});
    }
    return alone;
  }
  if (!part.has_dealt()) return alike;
  const Group& group = plan.groups(part.dealt());
  const std::vector<int> places = Coordinates(plan.mesh(), rank);
  Box same;
  for (int i = 0; i < plan.mesh().axes_size(); ++i) {
    const AxisGroups on = GroupsAlong(plan.mesh(), group, i);
    std::vector<int> there(on.groups, 0);  // of each group on the axis
    std::vector<int>& same_slice = same.emplace_back();
    for (const int p : alike[i]) {
      if (on.number[p] < 0 && placement.has_served()) continue;
      if (on.number[p] < 0) return absl::nullopt;
      ++there[on.number[p]];
      if (on.index[p] == on.index[places[i]]) same_slice.push_back(p);
    }
    for (const int count : there) {
      if (count != 0 && count != on.ranks) return absl::nullopt;
    }
  }
  return same;
}

std::string RanksText(const Mesh& mesh, const Box& box) {
  constexpr size_t kShown = 16;
  std::vector<int> ranks = RanksIn(mesh, box);
  const size_t more = ranks.size() - std::min(ranks.size(), kShown);
  ranks.resize(ranks.size() - more);
  return absl::StrCat(absl::StrJoin(ranks, ", "),
                      more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

absl::Status CheckCompany(const Plan& plan, const Home& home, int rank,
                          const Placement& placement, const Company& company) {
  const Mesh& mesh = plan.mesh();
  const Unit::Part& part = plan.units(company.unit).parts(company.part);
  const Box alike = Alike(plan, home, part, rank, company.sums);
  const absl::optional<Box> wanted =
      AlikeAtRest(plan, placement, alike, company, rank);
  const auto what = [&] {
    return absl::StrCat("part ", company.part, " of unit ", company.unit,
                        " is on ranks ",
                        RanksText(mesh, wanted.value_or(alike)));
  };
  if (!wanted.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(what(), " but dealt over group ",
                     plan.groups(placement.parts(company.part).dealt()).name(),
                     ", which has others"));
  }
  Box said;
  for (const int place : Coordinates(mesh, rank)) said.push_back({place});
  if (company.group.has_value()) {
    said = BoxOf(mesh, plan.groups(*company.group), rank);
  }
  if (said == *wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(what(), " but rank ", rank,
                   company.sums ? " sums its gradients over ranks "
                                : " shares it with ranks ",
                   RanksText(mesh, said)));
}

// All that the answer follows from: of units that are alike it is one question.
std::string QuestionOf(const Plan& plan, const Home& home, int rank,
                       const Placement& placement, const Company& company) {
  std::string shares;
  for (const Unit::Part::Share& share :
       plan.units(company.unit).parts(company.part).shares()) {
    absl::StrAppend(&shares, share.axis(), " ", share.copies(), " ",
                    share.summed(), ",");
  }
  const Placement::Part& part = placement.parts(company.part);
  return absl::StrCat(rank, "/", part.has_dealt() ? part.dealt() : -1, "/",
                      placement.has_served(), "/", company.group.value_or(-1),
                      "/", company.sums, "/", absl::StrJoin(home.places, ","),
                      "/", shares);
}

// A role says of each part of its units with which its ranks sum and share it:
// with those that have summands of the same, and the same.
absl::Status CheckHomes(const Plan& plan, const std::vector<Home>& homes) {
  std::set<std::string> answered;
  for (int u = 0; u < plan.units_size(); ++u) {
    if (homes[u].roles.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "unit ", u, " is on no rank: its parameters have no owner"));
    }
    for (const int role : homes[u].roles) {
      const int rank = FirstRankOf(plan.mesh(), plan.roles(role));
      const Placement& placement = *FindPlacement(plan.roles(role), u);
      for (int p = 0; p < placement.parts_size(); ++p) {
        const Placement::Part& with = placement.parts(p);
        Company sums = {.unit = u, .part = p, .sums = true};
        if (with.has_summed()) sums.group = with.summed();
        Company shares = {.unit = u, .part = p};
        if (with.has_shared()) shares.group = with.shared();
        const bool frozen = plan.units(u).parts(p).frozen();
        if (frozen && with.has_summed()) {
          return absl::FailedPreconditionError(
              absl::StrCat("part ", p, " of unit ", u,
                           " is frozen, and ranks sum its gradients"));
        }
        for (const Company& company : {sums, shares}) {
          if (frozen && company.sums) continue;
          const bool is_new =
              answered
                  .insert(QuestionOf(plan, homes[u], rank, placement, company))
                  .second;
          if (!is_new) continue;
          RETURN_IF_ERROR(
              CheckCompany(plan, homes[u], rank, placement, company));
        }
      }
    }
  }
  return absl::OkStatus();
}

// A gradient travels once, and not before its last addend.
absl::Status CheckReductions(const Plan& plan, const UnitPasses& unit_passes,
                             const Role& role) {
  const ProgramPlace place = {.rank = FirstRankOf(plan.mesh(), role),
                              .kind = Program::TRAIN};
  std::map<std::pair<int, int>, int> sums;  // by unit and part
  std::vector<bool> summed(plan.units_size(), false);
  for (const Instruction& instruction :
       FindProgram(role, Program::TRAIN)->instructions()) {
    if (instruction.kind() == Instruction::REDUCE_GRADS) {
      const int count = std::max(1, instruction.unit_count());
      for (int k = 0; k < count; ++k) {
        const int u = instruction.unit() + k;
        const int parts = TrainedParts(plan.units(u));
        const int first = instruction.part();
        const int64_t end =
            count > 1 ? parts
                      : int64_t{first} + std::max(1, instruction.part_count());
        const bool is_all = first == 0 && instruction.part_count() == 0;
        if (first < 0 || first >= parts || end > parts ||
            (count > 1 && !is_all)) {
          return ProgramFault(
              place, instruction,
              absl::StrCat("unit ", u, " has ", parts, " trained parts"));
        }
        summed[u] = true;
        for (int part = first; part < end; ++part) {
          sums[{u, part}] += 1;
          const Placement::Part& with = FindPlacement(role, u)->parts(part);
          if (with.has_summed() && with.summed() == instruction.group()) {
            continue;
          }
          return ProgramFault(
              place, instruction,
              absl::StrCat("unit ", u, " sums its gradients over ",
                           with.has_summed()
                               ? absl::StrCat("group ",
                                              plan.groups(with.summed()).name())
                               : "nobody else"));
        }
      }
    }
    if (instruction.kind() != Instruction::BACKWARD_WEIGHT) continue;
    const std::vector<UnitPasses::Pass>& passes =
        unit_passes.Of(instruction.unit(), instruction.kind());
    if (instruction.segment() < 0 ||
        instruction.segment() >= static_cast<int>(passes.size())) {
      return ProgramFault(
          place, instruction,
          absl::StrCat("its unit has ", passes.size(), " such segments"));
    }
    const SegmentUse& use = passes[instruction.segment()].use;
    std::vector<int> adds_to;
    if (use.weight_gradients) adds_to.push_back(instruction.unit());
    for (const Unit::Tied& tied : plan.units(instruction.unit()).tied()) {
      if (use.tied_gradients) adds_to.push_back(tied.unit());
    }
    for (const int u : adds_to) {
      if (!summed[u]) continue;
      return ProgramFault(place, absl::StrCat(InstructionText(instruction),
                                              " adds to the gradients of unit ",
                                              u, " after they were reduced"));
    }
  }
  for (const Placement& placement : role.placements()) {
    const int u = placement.unit();
    for (int p = 0; p < placement.parts_size(); ++p) {
      const bool replicated = placement.parts(p).has_summed() &&
                              plan.units(u).parts(p).elements() > 0;
      const int count = sums[{u, p}];
      if (count == (replicated ? 1 : 0)) continue;
      return ProgramFault(place, Times(Instruction::REDUCE_GRADS, u, count));
    }
  }
  return absl::OkStatus();
}

// Each rank has one instruction of this kind for each part that it holds, dealt
// over all that have the same of it: so their slices are all of it, once.
absl::Status CheckDealt(const Plan& plan, const Role& role,
                        Program::Kind program, Instruction::Kind kind) {
  const ProgramPlace place = {.rank = FirstRankOf(plan.mesh(), role),
                              .kind = program};
  std::map<std::pair<int, int>, int> counts;  // by unit and part
  for (const Instruction& instruction :
       FindProgram(role, program)->instructions()) {
    if (instruction.kind() != kind) continue;
    const Placement& placement = *FindPlacement(role, instruction.unit());
    const int part = instruction.part();
    if (!IsIndexIn(part, placement.parts_size())) {
      return ProgramFault(
          place, instruction,
          absl::StrCat("its unit has ", placement.parts_size(), " parts"));
    }
    const Placement::Part& with = placement.parts(part);
    if (instruction.has_group() != with.has_shared() ||
        instruction.group() != with.shared()) {
      return ProgramFault(
          place, instruction,
          absl::StrCat("is not dealt over those who have the same, ",
                       with.has_shared() ? plan.groups(with.shared()).name()
                                         : "nobody else"));
    }
    counts[{instruction.unit(), part}] += 1;
  }
  for (const Placement& placement : role.placements()) {
    const int u = placement.unit();
    for (int p = 0; p < placement.parts_size(); ++p) {
      const Unit::Part& of = plan.units(u).parts(p);
      // Where each step is one replica's, DELIVER takes its norm.
      const bool skips = kind == Instruction::GRAD_NORM &&
                         (of.frozen() || plan.derived().takes_turns());
      const int wanted =
          of.elements() > 0 && !skips && !KeepsNoState(placement) ? 1 : 0;
      const int count = counts[{u, p}];
      if (count != wanted) return ProgramFault(place, Times(kind, u, count));
    }
  }
  return absl::OkStatus();
}

// A role steps each unit that it holds once, if anything of it is trained.
absl::Status CheckSteps(const Plan& plan, const Role& role) {
  std::map<int, int> counts;
  for (const Instruction& instruction :
       FindProgram(role, Program::TRAIN)->instructions()) {
    if (instruction.kind() == Instruction::STEP) ++counts[instruction.unit()];
  }
  for (const Placement& placement : role.placements()) {
    const int u = placement.unit();
    const auto& parts = plan.units(u).parts();
    const bool trained =
        std::any_of(parts.begin(), parts.end(), [](const Unit::Part& part) {
          return !part.frozen() && part.elements() > 0;
        });
    const bool steps = trained && !KeepsNoState(placement);
    if (counts[u] == (steps ? 1 : 0)) continue;
    return ProgramFault(
        {.rank = FirstRankOf(plan.mesh(), role), .kind = Program::TRAIN},
        Times(Instruction::STEP, u, counts[u]));
  }
  return absl::OkStatus();
}

// Where gradients are clipped, no parameter is changed before the ranks have
// summed the step's norm, nor does that grow afterwards.
absl::Status CheckClipping(const Plan& plan, const Role& role) {
  if (plan.job().training().gradient_clipping() == 0 ||
      MeshSize(plan.mesh()) == 1) {
    return absl::OkStatus();
  }
  const ProgramPlace place = {.rank = FirstRankOf(plan.mesh(), role),
                              .kind = Program::TRAIN};
  bool summed = false;
  for (const Instruction& instruction :
       FindProgram(role, Program::TRAIN)->instructions()) {
    switch (instruction.kind()) {
      case Instruction::REDUCE_SCALARS:
        summed = instruction.ahead() == 0;
        break;
      case Instruction::ADMIT:
        summed = true;  // by one replica, of all that it pushes
        break;
      case Instruction::GRAD_NORM:
        if (!summed) break;
        return ProgramFault(place, instruction,
                            "adds to the norm after it was summed");
      case Instruction::STEP:
        if (summed) break;
        return ProgramFault(
            place, instruction,
            "clips by a norm that the ranks have not summed before it");
      default:
        break;
    }
  }
  return absl::OkStatus();
}

// A program that some roles have and others lack is a fault. Whether they have
// it.
absl::StatusOr<bool> Have(const Plan& plan, Program::Kind kind) {
  int roles = 0;
  for (const Role& role : plan.roles()) {
    if (FindProgram(role, kind) != nullptr) ++roles;
  }
  if (roles == plan.roles_size()) return true;
  if (roles == 0 && kind != StepKind(plan.job())) return false;
  return absl::FailedPreconditionError(
      absl::StrCat(roles, " of ", plan.roles_size(), " roles have a ",
                   Program::Kind_Name(kind), " program"));
}

// Nothing is trained, so that no gradients are summed and nothing is saved.
absl::Status CheckOnlyValidates(const Plan& plan) {
  for (const Role& role : plan.roles()) {
    for (const Program& program : role.programs()) {
      if (program.kind() == Program::VALIDATE) continue;
      return ProgramFault(
          {.rank = FirstRankOf(plan.mesh(), role), .kind = program.kind()},
          "is there, and the job only evaluates");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckWork(const Plan& plan) {
  RETURN_IF_ERROR(CheckHomes(plan, HomesOf(plan)));
  for (const Program::Kind kind :
       {Program::TRAIN, Program::VALIDATE, Program::FILL, Program::REPORT}) {
    RETURN_IF_ERROR(Have(plan, kind).status());
  }
  if (plan.job().evaluate()) return CheckOnlyValidates(plan);
  ASSIGN_OR_RETURN(const bool saves, Have(plan, Program::CHECKPOINT));
  const bool learns = ChangesParameters(plan.job().optimizer());
  const UnitPasses unit_passes(plan);
  for (const Role& role : plan.roles()) {
    RETURN_IF_ERROR(CheckReductions(plan, unit_passes, role));
    if (learns) {
      RETURN_IF_ERROR(
          CheckDealt(plan, role, Program::TRAIN, Instruction::GRAD_NORM));
      RETURN_IF_ERROR(CheckSteps(plan, role));
      RETURN_IF_ERROR(CheckClipping(plan, role));
    }
    if (!saves) continue;
    RETURN_IF_ERROR(
        CheckDealt(plan, role, Program::CHECKPOINT, Instruction::SNAPSHOT));
  }
  return absl::OkStatus();
}

}  // namespace troupe
