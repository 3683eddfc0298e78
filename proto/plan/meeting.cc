#include "proto/plan/meeting.h"

#include "proto/base/check.h"

namespace troupe {

bool IsCollective(Instruction::Kind kind) {
  return kind == Instruction::EXCHANGE || kind == Instruction::REDUCE_GRADS ||
         kind == Instruction::REDUCE_SCALARS;
}

bool IsTransfer(Instruction::Kind kind) {
  return kind == Instruction::SEND || kind == Instruction::RECV;
}

bool SumsNoStep(const Instruction& instruction, int64_t step) {
  return instruction.kind() == Instruction::REDUCE_SCALARS &&
         instruction.ahead() < 0 && step + instruction.ahead() < 1;
}

Meeting::Place Meeting::PlaceOf(int rank, const Instruction& instruction) {
  const int group = instruction.group();
  if (instruction.kind() == Instruction::SEND) {
    return {group, instruction.lane(), rank, instruction.peer()};
  }
  if (instruction.kind() == Instruction::RECV) {
    return {group, instruction.lane(), instruction.peer(), rank};
  }
  return {group, instruction.lane(), -1, -1};
}

std::vector<int> Meeting::Members(int rank,
                                  const Instruction& instruction) const {
  if (IsTransfer(instruction.kind())) return {rank, instruction.peer()};
  if (!IsCollective(instruction.kind())) return {rank};
  const auto& ranks = plan_.groups(instruction.group()).ranks();
  return {ranks.begin(), ranks.end()};
}

std::vector<RankInstruction> Meeting::Arrive(const RankInstruction& here,
                                             const Instruction& instruction) {
  const bool meets =
      IsCollective(instruction.kind()) || IsTransfer(instruction.kind());
  if (!meets) return {here};
  std::map<int, int>& waiting = waiting_[PlaceOf(here.rank, instruction)];
  CHECK(waiting.emplace(here.rank, here.instruction).second)
      << "a lane runs one instruction at a time";
  const size_t members = IsTransfer(instruction.kind())
                             ? 2
                             : plan_.groups(instruction.group()).ranks_size();
  if (waiting.size() < members) return {};
  std::vector<RankInstruction> together;
  for (const auto& [rank, index] : waiting) together.push_back({rank, index});
  waiting.clear();
  return together;
}

std::vector<int> Meeting::MissingFor(int rank,
                                     const Instruction& instruction) const {
  const auto place = waiting_.find(PlaceOf(rank, instruction));
  std::vector<int> missing;
  for (const int member : Members(rank, instruction)) {
    const bool came = member == rank || (place != waiting_.end() &&
                                         place->second.count(member) > 0);
    if (!came) missing.push_back(member);
  }
  return missing;
}

}  // namespace troupe
