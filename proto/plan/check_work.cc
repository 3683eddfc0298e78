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

// Where each unit rests: checked against placements, which must agree.
struct Home {
  int group = -1;
  std::vector<int> ranks;
};

absl::StatusOr<std::vector<Home>> HomesOf(const Plan& plan) {
  std::vector<Home> homes(plan.units_size());
  for (const Placement& placement : plan.placements()) {
    Home& home = homes[placement.unit()];
    if (home.group >= 0 && home.group != placement.replica_group()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "unit ", placement.unit(), " sums its gradients over groups ",
          plan.groups(home.group).name(), " and ",
          plan.groups(placement.replica_group()).name(), "; want one"));
    }
    home.group = placement.replica_group();
    home.ranks.push_back(placement.rank());
  }
  for (int u = 0; u < plan.units_size(); ++u) {
    Home& home = homes[u];
    if (home.group < 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("unit ", u,
                       " is on no rank: its parameters have no "
                       "owner"));
    }
    std::sort(home.ranks.begin(), home.ranks.end());
    const auto& group = plan.groups(home.group).ranks();
    if (!std::equal(home.ranks.begin(), home.ranks.end(), group.begin(),
                    group.end())) {
      return absl::FailedPreconditionError(absl::StrCat(
          "unit ", u, " is on ranks ", absl::StrJoin(home.ranks, ", "),
          " but sums its gradients over ranks ", absl::StrJoin(group, ", ")));
    }
  }
  return homes;
}

// A gradient travels once, and not before its last addend.
absl::Status CheckReductions(const Plan& plan, const ProgramPlace& place,
                             const Program& program,
                             const std::vector<Home>& homes) {
  std::vector<int> sums(plan.units_size(), 0);
  for (const Instruction& instruction : program.instructions()) {
    if (instruction.kind() == Instruction::REDUCE_GRADS) {
      for (int k = 0; k < std::max(1, instruction.unit_count()); ++k) {
        const int u = instruction.unit() + k;
        sums[u] += 1;
        if (homes[u].group == instruction.group()) continue;
        return ProgramFault(
            place, absl::StrCat(InstructionText(instruction), ": unit ", u,
                                " sums its gradients over group ",
                                plan.groups(homes[u].group).name()));
      }
    }
    if (instruction.kind() != Instruction::BACKWARD_WEIGHT) continue;
    std::vector<int> adds_to = {instruction.unit()};
    for (const Unit::Tied& tied : plan.units(instruction.unit()).tied()) {
      adds_to.push_back(tied.unit());
    }
    for (const int u : adds_to) {
      if (sums[u] == 0) continue;
      return ProgramFault(place, absl::StrCat(InstructionText(instruction),
                                              " adds to the gradients of unit ",
                                              u, " after they were reduced"));
    }
  }
  for (int u = 0; u < plan.units_size(); ++u) {
    const auto& ranks = homes[u].ranks;
    if (!std::binary_search(ranks.begin(), ranks.end(), place.rank)) continue;
    const bool replicated =
        ranks.size() > 1 && plan.units(u).flat_elements() > 0;
    if (sums[u] == (replicated ? 1 : 0)) continue;
    return ProgramFault(place, Times(Instruction::REDUCE_GRADS, u, sums[u]));
  }
  return absl::OkStatus();
}

// Exactly one rank of the unit's replicas has an instruction of this kind.
absl::Status CheckOnce(const Plan& plan, Program::Kind program,
                       Instruction::Kind kind,
                       const std::map<int, Tally>& tallies,
                       const std::vector<Home>& homes) {
  for (int u = 0; u < plan.units_size(); ++u) {
    if (plan.units(u).flat_elements() == 0) continue;
    int count = 0;
    for (const int rank : homes[u].ranks) {
      count += Count(tallies.at(rank), kind, u);
    }
    if (count == 1) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        Program::Kind_Name(program), ": ", Times(kind, u, count), " on ranks ",
        absl::StrJoin(homes[u].ranks, ", "), " together; want 1"));
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
    RETURN_IF_ERROR(CheckOnce(plan, Program::TRAIN, Instruction::GRAD_NORM,
                              training, homes));
    RETURN_IF_ERROR(CheckSteps(plan, training, homes));
  }
  ASSIGN_OR_RETURN(const auto saving, TalliesOf(plan, Program::CHECKPOINT));
  if (saving.empty()) return absl::OkStatus();
  return CheckOnce(plan, Program::CHECKPOINT, Instruction::SNAPSHOT, saving,
                   homes);
}

}  // namespace troupe
