#include "proto/plan/meeting.h"

#include <set>

#include "proto/base/check.h"

namespace troupe {

bool IsCollective(Instruction::Kind kind) {
  switch (kind) {
    case Instruction::EXCHANGE:
    case Instruction::REDUCE_GRADS:
    case Instruction::REDUCE_SCALARS:
    case Instruction::SCATTER_GRADS:
    case Instruction::GATHER_PARAMETERS:
    case Instruction::MIRROR:
    case Instruction::PUSH:
    case Instruction::PULL:
    case Instruction::OUTER_REDUCE:
      return true;
    default:
      return false;
  }
}

bool IsTransfer(Instruction::Kind kind) {
  return kind == Instruction::SEND || kind == Instruction::RECV;
}

bool IsTurn(Instruction::Kind kind) {
  return kind == Instruction::CLAIM || kind == Instruction::DELIVER ||
         kind == Instruction::ADMIT;
}

bool Meets(Instruction::Kind kind) {
  return IsCollective(kind) || IsTransfer(kind);
}

std::vector<int> MeetingGroups(const Role& role) {
  std::set<int> groups;
  for (const Program& program : role.programs()) {
    for (const Instruction& instruction : program.instructions()) {
      if (Meets(instruction.kind()) || IsTurn(instruction.kind())) {
        groups.insert(instruction.group());
      }
    }
  }
  return {groups.begin(), groups.end()};
}

bool SumsNoStep(const Instruction& instruction, int64_t step) {
  return instruction.kind() == Instruction::REDUCE_SCALARS &&
         instruction.ahead() < 0 && step + instruction.ahead() < 1;
}

Meeting::Place Meeting::PlaceOf(int rank,
                                const Instruction& instruction) const {
  const int group = instruction.group();
  const int lane = instruction.lane();
  if (IsTransfer(instruction.kind())) {
    const int peer = classes_.PeerOf(rank, instruction);
    const bool sends = instruction.kind() == Instruction::SEND;
    return {group, lane, sends ? rank : peer, sends ? peer : rank};
  }
  return {group, lane, classes_.Members(rank, group).front(), -1};
}

std::vector<int> Meeting::Members(int rank,
                                  const Instruction& instruction) const {
  if (IsTransfer(instruction.kind())) {
    return {rank, classes_.PeerOf(rank, instruction)};
  }
  if (!IsCollective(instruction.kind())) return {rank};
  return classes_.Members(rank, instruction.group());
}

std::vector<RankInstruction> Meeting::Arrive(const RankInstruction& here,
                                             const Instruction& instruction) {
  if (!Meets(instruction.kind())) return {here};
  std::map<int, int>& waiting = waiting_[PlaceOf(here.rank, instruction)];
  CHECK(waiting.emplace(here.rank, here.instruction).second)
      << "a lane runs one instruction at a time";
  const size_t members =
      IsTransfer(instruction.kind())
          ? 2
          : classes_.Members(here.rank, instruction.group()).size();
  if (waiting.size() < members) return {};
  std::vector<RankInstruction> together;
  for (const auto& [rank, index] : waiting) together.push_back({rank, index});
  waiting.clear();
  return together;
}

std::vector<int> Meeting::MissingFor(int rank,
                                     const Instruction& instruction) const {
  if (!Meets(instruction.kind())) return {};
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
