#include "scheduler/passes/move_between_tiers.h"

#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/lanes.h"
#include "proto/plan/operand.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

// An operand of an instruction, by their indices.
struct Use {
  int instruction = 0;
  int operand = 0;
  Tier tier = DEVICE;  // where the instruction uses it
};

// Counts the steps of work of each tier: consecutive computation of one unit
// and micro-batch.
class WorkSteps {
 public:
  WorkSteps(const Program& program, const Lanes& lanes) {
    std::map<Tier, const Instruction*> last;
    std::map<Tier, int> count;
    for (const Instruction& instruction : program.instructions()) {
      const Lane::Kind lane = KindOfLane(lanes, instruction.lane());
      if (lane == Lane::COMPUTE || lane == Lane::HOST) {
        const Tier tier = *TierOfOperands(lane);
        const Instruction*& before = last[tier];
        if (before == nullptr || !OfOneUnit(*before, instruction)) {
          ++count[tier];
        }
        before = &instruction;
      }
      steps_.push_back({count[DEVICE], count[HOST]});
    }
  }

  // Of the step that runs in this tier at the instruction, or ran last.
  int At(int instruction, Tier tier) const {
    const auto& [device, host] = steps_[instruction];
    return tier == DEVICE ? device : host;
  }

 private:
  static bool OfOneUnit(const Instruction& a, const Instruction& b) {
    return a.unit() == b.unit() && a.micro_batch() == b.micro_batch() &&
           a.ahead() == b.ahead();
  }

  std::vector<std::pair<int, int>> steps_;  // by instruction
};

// The tiers on the way from one to another, both included, neighbours next to
// each other.
std::vector<Tier> Way(Tier from, Tier to) {
  std::vector<Tier> way = {from};
  while (way.back() != to) {
    const int step = way.back() < to ? 1 : -1;
    way.push_back(static_cast<Tier>(way.back() + step));
  }
  return way;
}

class Moves {
 public:
  Moves(const Lanes& lanes, Program& program)
      : lanes_(lanes),
        program_(program),
        steps_(program, lanes),
        before_(program.instructions_size()),
        behind_(program.instructions_size()) {}

  void Run() {
    const std::vector<std::vector<Use>> uses = UsesOfBuffers();
    for (size_t b = 0; b < uses.size(); ++b) MoveValue(b, uses[b]);
    Program moved;
    moved.set_kind(program_.kind());
    *moved.mutable_buffers() = std::move(*program_.mutable_buffers());
    for (int i = 0; i < program_.instructions_size(); ++i) {
      for (Instruction& move : before_[i]) {
        *moved.add_instructions() = std::move(move);
      }
      *moved.add_instructions() = std::move(*program_.mutable_instructions(i));
      for (Instruction& move : behind_[i]) {
        *moved.add_instructions() = std::move(move);
      }
    }
    program_ = std::move(moved);
  }

 private:
  std::vector<std::vector<Use>> UsesOfBuffers() const {
    std::vector<std::vector<Use>> uses(program_.buffers_size());
    for (int i = 0; i < program_.instructions_size(); ++i) {
      const Instruction& instruction = program_.instructions(i);
      const absl::optional<Tier> tier =
          TierOfOperands(KindOfLane(lanes_, instruction.lane()));
      for (int o = 0; o < instruction.operands_size(); ++o) {
        const int b = instruction.operands(o).buffer();
        uses[b].push_back({.instruction = i,
                           .operand = o,
                           .tier = tier.value_or(TierOf(program_.buffers(b)))});
      }
    }
    return uses;
  }

  void MoveValue(int buffer, const std::vector<Use>& uses) {
    if (uses.empty()) return;
    const bool lasts = OutlivesProgram(program_.buffers(buffer));
    size_t end = EndOfRun(uses, 0);
    if (!lasts && end == uses.size()) {
      return SetTier(uses[0].tier, *program_.mutable_buffers(buffer));
    }
    for (size_t begin = 0; begin < uses.size(); begin = end) {
      end = EndOfRun(uses, begin);
      if (uses[begin].tier == TierOf(program_.buffers(buffer))) continue;
      MoveRun(
          buffer, {uses.begin() + begin, uses.begin() + end},
          {.before = lasts || begin > 0, .behind = lasts || end < uses.size()});
    }
  }

  size_t EndOfRun(const std::vector<Use>& uses, size_t begin) const {
    size_t end = begin + 1;
    while (end < uses.size() && AreOfOneRun(uses[end - 1], uses[end])) ++end;
    return end;
  }
  bool AreOfOneRun(const Use& a, const Use& b) const {
    if (a.tier != b.tier) return false;
    return steps_.At(b.instruction, a.tier) -
               steps_.At(a.instruction, a.tier) <=
           1;
  }

  // Whether the value is there before a run of uses, and is used behind it.
  struct Lives {
    bool before = false;
    bool behind = false;
  };

  void MoveRun(int buffer, const std::vector<Use>& uses, const Lives& lives) {
    const Tier rests = TierOf(program_.buffers(buffer));
    const std::vector<Tier> way = Way(rests, uses.front().tier);
    const int first = uses.front().instruction;
    int copy = -1;
    if (lives.before && !WritesAll(uses.front())) {
      copy = Carry(Instruction::FETCH, buffer, way, first, before_[first]);
    } else {
      copy = AddCopy(buffer, way.back());
    }
    int changed = -1;
    for (const Use& use : uses) {
      Instruction::Operand& operand = OperandOf(use);
      operand.set_buffer(copy);
      if (Writes(operand)) changed = use.instruction;
    }
    if (changed < 0 || !lives.behind) return;
    // Towards where it rests, whose own buffer is the last.
    std::vector<Tier> back = {way.rbegin(), way.rend()};
    back.pop_back();
    std::vector<Instruction>& evicts = behind_[changed];
    const int last = Carry(Instruction::EVICT, copy, back, changed, evicts);
    evicts.push_back(Move(Instruction::EVICT, last, buffer, changed));
  }

  bool WritesAll(const Use& use) {
    const Instruction::Operand& operand = OperandOf(use);
    const Buffer& buffer = program_.buffers(operand.buffer());
    return !Reads(operand) &&
           Covers(BytesOf(operand, buffer), {0, buffer.bytes()});
  }

  // Moves a value along the way, into a copy in each tier behind the first.
  // Returns the last one.
  int Carry(Instruction::Kind kind, int from, const std::vector<Tier>& way,
            int user, std::vector<Instruction>& moves) {
    for (size_t i = 1; i < way.size(); ++i) {
      const int to = AddCopy(from, way[i]);
      moves.push_back(Move(kind, from, to, user));
      from = to;
    }
    return from;
  }

  int AddCopy(int of, Tier tier) {
    Buffer copy = program_.buffers(of);
    copy.clear_carried();
    copy.clear_copy_offset();
    copy.set_copy(++copies_[{copy.kind(), copy.unit(), copy.micro_batch()}]);
    SetTier(tier, copy);
    *program_.add_buffers() = std::move(copy);
    return program_.buffers_size() - 1;
  }

  static void SetTier(Tier tier, Buffer& buffer) {
    buffer.clear_tier();
    if (tier != DEVICE) buffer.set_tier(tier);
  }

  Instruction Move(Instruction::Kind kind, int from, int to, int user) const {
    const Buffer& source = program_.buffers(from);
    const Buffer& target = program_.buffers(to);
    Instruction move;
    move.set_kind(kind);
    move.set_lane(LaneOfMove(TierOf(source), TierOf(target)));
    if (source.has_unit()) move.set_unit(source.unit());
    if (source.has_micro_batch()) move.set_micro_batch(source.micro_batch());
    move.set_ahead(program_.instructions(user).ahead());
    AddOperand(Instruction::FROM, from, Instruction::READ, move);
    AddOperand(Instruction::TO, to, Instruction::WRITE, move);
    return move;
  }
  void AddOperand(Instruction::Part part, int buffer,
                  Instruction::Access access, Instruction& move) const {
    Instruction::Operand& operand = *move.add_operands();
    operand.set_part(part);
    operand.set_buffer(buffer);
    operand.set_access(access);
    operand.set_bytes(program_.buffers(buffer).bytes());
  }

  Instruction::Operand& OperandOf(const Use& use) {
    return *program_.mutable_instructions(use.instruction)
                ->mutable_operands(use.operand);
  }

  const Lanes& lanes_;
  Program& program_;
  const WorkSteps steps_;
  // Of values, so far: kind, unit and micro-batch.
  std::map<std::tuple<Buffer::Kind, int, int>, int> copies_;
  std::vector<std::vector<Instruction>> before_;  // by instruction
  std::vector<std::vector<Instruction>> behind_;
};

}  // namespace

void MoveBetweenTiers(Draft& draft) {
  for (Role& role : *draft.plan.mutable_roles()) {
    for (Program& program : *role.mutable_programs()) {
      Moves(draft.plan.lanes(), program).Run();
    }
  }
}

}  // namespace troupe
