#include "proto/plan/meeting.h"

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
  const Place place = {instruction.group(), instruction.lane()};
  std::map<int, int>& waiting = waiting_[place];
  CHECK(waiting.emplace(here.rank, here.instruction).second)
      << "a lane runs one instruction at a time";
  if (static_cast<int>(waiting.size()) <
      plan_.groups(instruction.group()).ranks_size()) {
    return {};
  }
  std::vector<RankInstruction> together;
  for (const auto& [rank, index] : waiting) together.push_back({rank, index});
  waiting.clear();
  return together;
}

std::vector<int> Meeting::MissingFor(const RankInstruction& here) const {
  const Instruction& instruction = At(here);
  if (!IsCollective(instruction.kind())) return {};
  const auto place = waiting_.find({instruction.group(), instruction.lane()});
  std::vector<int> missing;
  for (const int rank : plan_.groups(instruction.group()).ranks()) {
    const bool came = place != waiting_.end() && place->second.count(rank) > 0;
    if (!came) missing.push_back(rank);
  }
  return missing;
}

}  // namespace troupe
