#include "scheduler/passes/move_between_tiers.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/operand.h"
#include "scheduler/passes/assign_slots.h"
#include "scheduler/passes/lanes.h"
#include "scheduler/passes/tier_uses.h"
#include "scheduler/tiers/chunks.h"

namespace troupe {
namespace {

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
  explicit Moves(Program& program)
      : program_(program),
        before_(program.instructions_size()),
        behind_(program.instructions_size()) {}

  // REQUIRES the program's own uses.
  void Run(const TierUses& uses, const StayingRuns& staying) {
    const int buffers = program_.buffers_size();
    for (int b = 0; b < buffers; ++b) MoveValue(b, uses.RunsOf(b, staying));
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
  void MoveValue(int buffer, const std::vector<TierRun>& runs) {
    if (runs.empty()) return;
    const bool lasts = OutlivesProgram(program_.buffers(buffer));
    if (!lasts && runs.size() == 1) {
      return SetTier(runs[0].front().tier, *program_.mutable_buffers(buffer));
    }
    for (size_t r = 0; r < runs.size(); ++r) {
      if (runs[r].front().tier == TierOf(program_.buffers(buffer))) continue;
      MoveRun(buffer, runs[r],
              {.before = (lasts || r > 0) && !BeginsValue(buffer, runs, r),
               .behind = lasts || r + 1 < runs.size()});
    }
  }

  // Whether a micro-batch's value is made by the run, maybe part by part: that
  // of a later step has the buffer of an earlier one's.
  bool BeginsValue(int buffer, const std::vector<TierRun>& runs,
                   size_t run) const {
    const auto ahead = [&](const TierRun& of) {
      return program_.instructions(of.front().instruction).ahead();
    };
    const TierUse& first = runs[run].front();
    const bool reads =
        Reads(program_.instructions(first.instruction).operands(first.operand));
    return program_.buffers(buffer).has_micro_batch() && !reads &&
           (run == 0 || ahead(runs[run]) != ahead(runs[run - 1]));
  }

  // Whether the value is there before a run of uses, and is used behind it.
  struct Lives {
    bool before = false;
    bool behind = false;
  };

  void MoveRun(int buffer, const TierRun& uses, const Lives& lives) {
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
    for (const TierUse& use : uses) {
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

  bool WritesAll(const TierUse& use) {
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

  Instruction::Operand& OperandOf(const TierUse& use) {
    return *program_.mutable_instructions(use.instruction)
                ->mutable_operands(use.operand);
  }

  Program& program_;
  // Of values, so far: kind, unit and micro-batch.
  std::map<std::tuple<Buffer::Kind, int, int>, int> copies_;
  std::vector<std::vector<Instruction>> before_;  // by instruction
  std::vector<std::vector<Instruction>> behind_;
};

// A role's programs and what may stay on its device.
class RoleMoves {
 public:
  // Borrows all.
  RoleMoves(const Plan& plan, const Role& role, StayRule rule)
      : plan_(plan), memory_(plan.job().memory()), role_(role), rule_(rule) {
    for (const Program& program : role.programs()) {
      uses_.emplace_back(program, plan_.lanes());
      if (!memory_.has_chunk_megabytes()) continue;
      runs_.emplace_back(program, uses_.back(), memory_);
      const DeviceRoom all = runs_.back().All();
      all_.fetched = std::max(all_.fetched, all.fetched);
      all_.activations = std::max(all_.activations, all.activations);
    }
  }

  // As much stays as the device has bytes for, as far as a few trials find it:
  // how well it packs is seen when it is packed.
  Role Moved() const {
    if (!memory_.has_chunk_megabytes()) return WithRoom(absl::nullopt);
    if (!memory_.has_device_bytes()) return WithRoom(all_);
    Role best = WithRoom(absl::nullopt);
    double fits = 0;  // of what it takes for all to stay
    double too_much = 1;
    double share = 1;
    for (int trial = 0; trial < kTrials; ++trial) {
      Role role = WithRoom(Share(share));
      const bool all_fits =
          SlotBytes(plan_, role, DEVICE) <= memory_.device_bytes();
      if (all_fits) best = std::move(role);
      if (all_fits && share == 1) break;
      (all_fits ? fits : too_much) = share;
      share = (fits + too_much) / 2;
    }
    return best;
  }

 private:
  static constexpr int kTrials = 10;

  DeviceRoom Share(double share) const {
    const auto of = [share](int64_t bytes) {
      return static_cast<int64_t>(share * static_cast<double>(bytes));
    };
    return {.fetched = of(all_.fetched), .activations = of(all_.activations)};
  }

  // Nothing: nothing stays.
  Role WithRoom(const absl::optional<DeviceRoom>& room) const {
    Role role = role_;
    for (int p = 0; p < role.programs_size(); ++p) {
      StayingRuns staying;
      if (room.has_value()) staying = runs_[p].Staying(*room, rule_);
      Moves(*role.mutable_programs(p)).Run(uses_[p], staying);
    }
    return role;
  }

  const Plan& plan_;
  const MemorySpec& memory_;
  const Role& role_;
  const StayRule rule_;
  std::vector<TierUses> uses_;      // by program
  std::vector<RunsOnDevice> runs_;  // likewise, where chunks stay
  DeviceRoom all_;                  // with which all of any stays
};

}  // namespace

void MoveBetweenTiers(StayRule rule, Draft& draft) {
  for (Role& role : *draft.plan.mutable_roles()) {
    role = RoleMoves(draft.plan, role, rule).Moved();
  }
}

void MoveBetweenTiers(Draft& draft) {
  MoveBetweenTiers(StayUntilNextUse, draft);
}

}  // namespace troupe
