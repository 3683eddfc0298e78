#include "proto/plan/check_work.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status.h"
#include "proto/plan/fault.h"
#include "proto/plan/find_program.h"
#include "proto/plan/mesh.h"
#include "proto/plan/program_text.h"

namespace troupe {
namespace {

// How often a program has each (kind, unit, micro-batch); ranges of units count
// for each unit, and micro-batch is -1 where there is none.
using Tally = std::map<std::tuple<Instruction::Kind, int, int>, int>;

Tally TallyOf(const Program& program) {
  Tally tally;
  for (const Instruction& instruction : program.instructions()) {
    if (!instruction.has_unit()) continue;
    const int micro_batch =
        instruction.has_micro_batch() ? instruction.micro_batch() : -1;
    for (int k = 0; k < std::max(1, instruction.unit_count()); ++k) {
      ++tally[{instruction.kind(), instruction.unit() + k, micro_batch}];
    }
  }
  return tally;
}

int Count(const Tally& tally, Instruction::Kind kind, int unit,
          int micro_batch = -1) {
  const auto found = tally.find({kind, unit, micro_batch});
  return found == tally.end() ? 0 : found->second;
}

std::string Times(Instruction::Kind kind, int unit, int count) {
  return absl::StrCat(
      Instruction::Kind_Name(kind), " of unit ", unit, " is ",
      count == 0 ? "missing" : absl::StrCat("there ", count, " times"));
}

// Who holds a unit.
struct Home {
  std::vector<int> ranks;                  // ascending
  std::map<int, std::vector<int>> groups;  // by rank: of the unit's parts
};

// What of a part a rank holds, as its place on all axes where others hold other
// pieces. Whoever has the same holds the same; `sums`: or a summand of it.
std::vector<int> PieceOf(const Plan& plan, const Unit::Part& part, int rank,
                         bool sums) {
  std::vector<int> piece = Coordinates(plan.mesh(), rank);
  for (int i = 0; i < plan.mesh().axes_size(); ++i) {
    const std::string& axis = plan.mesh().axes(i).name();
    if (axis == "pipeline" || axis == "data") piece[i] = 0;
    for (const Unit::Part::Share& share : part.shares()) {
      if (share.axis() != axis || share.copies() < 1) continue;
      if (!sums || share.summed()) piece[i] /= share.copies();
    }
  }
  return piece;
}

// Placements say of every rank with whom it sums each part of a unit: those who
// have summands of the same.
absl::StatusOr<std::vector<Home>> HomesOf(const Plan& plan) {
  std::vector<Home> homes(plan.units_size());
  for (const Placement& placement : plan.placements()) {
    Home& home = homes[placement.unit()];
    home.ranks.push_back(placement.rank());
    home.groups[placement.rank()] = {placement.groups().begin(),
                                     placement.groups().end()};
  }
  for (int u = 0; u < plan.units_size(); ++u) {
    Home& home = homes[u];
    if (home.ranks.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("unit ", u,
                       " is on no rank: its parameters have no "
                       "owner"));
    }
    std::sort(home.ranks.begin(), home.ranks.end());
    for (int p = 0; p < plan.units(u).parts_size(); ++p) {
      const Unit::Part& part = plan.units(u).parts(p);
      std::map<std::vector<int>, std::vector<int>> summing;  // by piece
      for (const int rank : home.ranks) {
        summing[PieceOf(plan, part, rank, /*sums=*/true)].push_back(rank);
      }
      for (const auto& [piece, ranks] : summing) {
        const int first = home.groups.at(ranks.front())[p];
        for (const int rank : ranks) {
          const int index = home.groups.at(rank)[p];
          if (index != first) {
            return absl::FailedPreconditionError(absl::StrCat(
                "part ", p, " of unit ", u, " sums its gradients over groups ",
                plan.groups(first).name(), " and ", plan.groups(index).name(),
                "; want one"));
          }
          const auto& group = plan.groups(index).ranks();
          if (std::equal(ranks.begin(), ranks.end(), group.begin(),
                         group.end())) {
            continue;
          }
          return absl::FailedPreconditionError(absl::StrCat(
              "part ", p, " of unit ", u, " is on ranks ",
              absl::StrJoin(ranks, ", "), " but rank ", rank,
              " sums its gradients over ranks ", absl::StrJoin(group, ", ")));
        }
      }
    }
  }
  return homes;
}

// A gradient travels once, and not before its last addend.
absl::Status CheckReductions(const Plan& plan, const ProgramPlace& place,
                             const Program& program,
                             const std::vector<Home>& homes) {
  std::map<std::pair<int, int>, int> sums;  // by unit and part
  std::vector<bool> summed(plan.units_size(), false);
  for (const Instruction& instruction : program.instructions()) {
    if (instruction.kind() == Instruction::REDUCE_GRADS) {
      const int count = std::max(1, instruction.unit_count());
      for (int k = 0; k < count; ++k) {
        const int u = instruction.unit() + k;
        const int part = instruction.part();
        const int parts = plan.units(u).parts_size();
        if (part < 0 || part >= parts || (count > 1 && parts > 1)) {
          return ProgramFault(
              place, absl::StrCat(InstructionText(instruction), ": unit ", u,
                                  " has ", parts, " parts"));
        }
        sums[{u, part}] += 1;
        summed[u] = true;
        const int group = homes[u].groups.at(place.rank)[part];
        if (group == instruction.group()) continue;
        return ProgramFault(
            place, absl::StrCat(InstructionText(instruction), ": unit ", u,
                                " sums its gradients over group ",
                                plan.groups(group).name()));
      }
    }
    if (instruction.kind() != Instruction::BACKWARD_WEIGHT) continue;
    std::vector<int> adds_to = {instruction.unit()};
    for (const Unit::Tied& tied : plan.units(instruction.unit()).tied()) {
      adds_to.push_back(tied.unit());
    }
    for (const int u : adds_to) {
      if (!summed[u]) continue;
      return ProgramFault(place, absl::StrCat(InstructionText(instruction),
                                              " adds to the gradients of unit ",
                                              u, " after they were reduced"));
    }
  }
  for (int u = 0; u < plan.units_size(); ++u) {
    const auto found = homes[u].groups.find(place.rank);
    if (found == homes[u].groups.end()) continue;
    for (int p = 0; p < plan.units(u).parts_size(); ++p) {
      const bool replicated = plan.groups(found->second[p]).ranks_size() > 1 &&
                              plan.units(u).parts(p).elements() > 0;
      const int count = sums[{u, p}];
      if (count == (replicated ? 1 : 0)) continue;
      return ProgramFault(place, Times(Instruction::REDUCE_GRADS, u, count));
    }
  }
  return absl::OkStatus();
}

// Of those who hold the same of a part, exactly one has an instruction of this
// kind for it: one that begins with this part or with one before it.
absl::Status CheckOnce(const Plan& plan, Program::Kind program,
                       Instruction::Kind kind, const std::vector<Home>& homes) {
  // By rank and unit: from which parts on.
  std::map<std::pair<int, int>, std::vector<int>> begins;
  for (const RankPlan& rank : plan.ranks()) {
    for (const Instruction& instruction :
         FindProgram(rank, program)->instructions()) {
      if (instruction.kind() != kind) continue;
      begins[{rank.rank(), instruction.unit()}].push_back(instruction.part());
    }
  }
  for (int u = 0; u < plan.units_size(); ++u) {
    for (int p = 0; p < plan.units(u).parts_size(); ++p) {
      const Unit::Part& part = plan.units(u).parts(p);
      if (part.elements() == 0) continue;
      std::map<std::vector<int>, std::pair<int, std::vector<int>>> pieces;
      for (const int rank : homes[u].ranks) {
        auto& [count, ranks] =
            pieces[PieceOf(plan, part, rank, /*sums=*/false)];
        ranks.push_back(rank);
        for (const int begin : begins[{rank, u}]) count += begin <= p ? 1 : 0;
      }
      for (const auto& [piece, counted] : pieces) {
        const auto& [count, ranks] = counted;
        if (count == 1) continue;
        return absl::FailedPreconditionError(absl::StrCat(
            Program::Kind_Name(program), ": ", Times(kind, u, count),
            " on ranks ", absl::StrJoin(ranks, ", "), " together; want 1"));
      }
    }
  }
  return absl::OkStatus();
}

// Every rank that holds a unit steps it once.
absl::Status CheckSteps(const Plan& plan, const std::map<int, Tally>& tallies,
                        const std::vector<Home>& homes) {
  for (int u = 0; u < plan.units_size(); ++u) {
    if (plan.units(u).flat_elements() == 0) continue;
    for (const int rank : homes[u].ranks) {
      const int count = Count(tallies.at(rank), Instruction::STEP, u);
      if (count == 1) continue;
      return ProgramFault({.rank = rank, .kind = Program::TRAIN},
                          Times(Instruction::STEP, u, count));
    }
  }
  return absl::OkStatus();
}

// The tallies of all ranks; a program that some ranks have and others lack is a
// fault, and an empty map means that none has it.
absl::StatusOr<std::map<int, Tally>> TalliesOf(const Plan& plan,
                                               Program::Kind kind) {
  std::map<int, Tally> tallies;
  for (const RankPlan& rank : plan.ranks()) {
    const Program* const program = FindProgram(rank, kind);
    if (program != nullptr) tallies[rank.rank()] = TallyOf(*program);
  }
  const int ranks = static_cast<int>(tallies.size());
  if (ranks == plan.ranks_size()) return tallies;
  if (ranks == 0 && kind != Program::TRAIN) return tallies;
  return absl::FailedPreconditionError(
      absl::StrCat(ranks, " of ", plan.ranks_size(), " ranks have a ",
                   Program::Kind_Name(kind), " program"));
}

}  // namespace

absl::Status CheckWork(const Plan& plan) {
  ASSIGN_OR_RETURN(const std::vector<Home> homes, HomesOf(plan));
  for (const Program::Kind kind :
       {Program::VALIDATE, Program::FILL, Program::REPORT}) {
    RETURN_IF_ERROR(TalliesOf(plan, kind).status());
  }
  ASSIGN_OR_RETURN(const auto training, TalliesOf(plan, Program::TRAIN));
  for (const auto& [rank, tally] : training) {
    const ProgramPlace place = {.rank = rank, .kind = Program::TRAIN};
    RETURN_IF_ERROR(CheckReductions(
        plan, place, *FindProgram(plan.ranks(rank), Program::TRAIN), homes));
  }
  if (plan.job().optimizer().name() != "none") {
    RETURN_IF_ERROR(
        CheckOnce(plan, Program::TRAIN, Instruction::GRAD_NORM, homes));
    RETURN_IF_ERROR(CheckSteps(plan, training, homes));
  }
  ASSIGN_OR_RETURN(const auto saving, TalliesOf(plan, Program::CHECKPOINT));
  if (saving.empty()) return absl::OkStatus();
  return CheckOnce(plan, Program::CHECKPOINT, Instruction::SNAPSHOT, homes);
}

}  // namespace troupe
