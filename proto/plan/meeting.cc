#include "proto/plan/meeting.h"

#include <algorithm>

#include "proto/base/check.h"

namespace troupe {

bool IsCollective(Instruction::Kind kind) {
  return kind == Instruction::REDUCE_GRADS ||
         kind == Instruction::REDUCE_SCALARS;
}

Meeting::Meeting(const Plan& plan, Program::Kind kind) : plan_(plan) {
  for (const RankPlan& rank : plan.ranks()) {
    for (const Program& program : rank.programs()) {
      if (program.kind() == kind) programs_[rank.rank()] = &program;
    }
  }
}

const Instruction& Meeting::At(const RankInstruction& here) const {
  return programs_.at(here.rank)->instructions(here.instruction);
}

std::vector<RankInstruction> Meeting::Arrive(const RankInstruction& here) {
  const Instruction& instruction = At(here);
  if (!IsCollective(instruction.kind())) return {here};
  std::vector<RankInstruction>& waiting =
      waiting_[{instruction.group(), instruction.lane()}];
  for (const RankInstruction& other : waiting) {
    CHECK_NE(other.rank, here.rank) << "a lane runs one instruction at a time";
  }
  waiting.push_back(here);
  if (static_cast<int>(waiting.size()) <
      plan_.groups(instruction.group()).ranks_size()) {
    return {};
  }
  std::vector<RankInstruction> together;
  together.swap(waiting);
  return together;
}

std::vector<int> Meeting::MissingFor(const RankInstruction& here) const {
  const Instruction& instruction = At(here);
  if (!IsCollective(instruction.kind())) return {};
  const auto place = waiting_.find({instruction.group(), instruction.lane()});
  std::vector<int> missing;
  for (const int rank : plan_.groups(instruction.group()).ranks()) {
    const bool came =
        place != waiting_.end() &&
        std::any_of(place->second.begin(), place->second.end(),
                    [&](const RankInstruction& i) { return i.rank == rank; });
    if (!came) missing.push_back(rank);
  }
  return missing;
}

}  // namespace troupe
