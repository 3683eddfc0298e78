#include "scheduler/passes/assign_slots.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "proto/base/check.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/lanes.h"
#include "proto/plan/memory.h"
#include "proto/plan/operand.h"
#include "scheduler/passes/pack_buffers.h"
#include "scheduler/passes/place_gathers.h"

namespace troupe {
namespace {

// For buffers like this one.
int AddSlot(const Buffer& buffer, int64_t bytes, Role& role) {
  Slot& slot = *role.add_slots();
  slot.set_item(LineItem(buffer));
  slot.set_tier(TierOf(buffer));
  slot.set_bytes(TierAligned(bytes, TierOf(buffer)));
  return role.slots_size() - 1;
}

// Whether a stage's units do this for one micro-batch one after the other.
bool OfOneStep(const Instruction& a, const Instruction& b) {
  const bool forwards =
      (a.kind() == Instruction::FORWARD) == (b.kind() == Instruction::FORWARD);
  return forwards && a.micro_batch() == b.micro_batch() &&
         a.ahead() == b.ahead();
}

// Whether they are passes of the same unit, which are gathered and scattered
// one by one.
bool OfOneUnit(const Instruction& a, const Instruction& b) {
  return a.unit() == b.unit() && a.micro_batch() == b.micro_batch();
}

// When an instruction uses its buffers: while it runs, and where it moves them
// while the step of work next to it runs too. So what a rank sends, scatters or
// evicts is not written over before the next step is done, and what it
// receives, gathers or fetches has room from the beginning of the step before:
// otherwise they would wait for each other instead of overlapping. What takes
// several moves has room for one step more with each.
class Uses {
 public:
  // Where gathers are told when they have room: by instruction. Empty: a step
  // of work ahead.
  Uses(const Program& program, const Lanes& lanes,
       std::vector<int> gathers_since = {})
      : list_(program.instructions()),
        lanes_(lanes),
        gathers_since_(std::move(gathers_since)) {}

  Life Of(int index) const {
    switch (list_[index].kind()) {
      case Instruction::SEND:
        return {index, EndOfStepAfter(index, {OfOneStep, Lane::COMPUTE})};
      case Instruction::RECV:
        return {BeginOfStepBefore(index, {OfOneStep, Lane::COMPUTE}), index};
      case Instruction::SCATTER_GRADS:
        return {index, EndOfStepAfter(index, {OfOneUnit, Lane::COMPUTE})};
      case Instruction::GATHER_PARAMETERS:
        return {BeginOfGather(index), index};
      case Instruction::EVICT:
        return {index, EndOfStepsAfterEvict(index)};
      case Instruction::FETCH:
        return {BeginOfStepsBeforeFetch(index), index};
      default:
        return {index, index};
    }
  }

 private:
  // Steps of work: which instructions belong to one, and their lanes' kind.
  struct Steps {
    bool (*together)(const Instruction& a, const Instruction& b) = nullptr;
    Lane::Kind lanes = Lane::COMPUTE;
  };

  Lane::Kind LaneAt(int i) const { return KindOfLane(lanes_, list_[i].lane()); }
  int EndOfStepAfter(int index, const Steps& steps) const {
    int end = index;
    int i = index + 1;
    while (i < list_.size() && LaneAt(i) != steps.lanes) ++i;
    for (int first = i; i < list_.size(); ++i) {
      const bool works = LaneAt(i) == steps.lanes;
      if (works && !steps.together(list_[first], list_[i])) break;
      end = i;
    }
    return end;
  }
  int BeginOfStepBefore(int index, const Steps& steps) const {
    int begin = index;
    int i = index - 1;
    while (i >= 0 && LaneAt(i) != steps.lanes) --i;
    for (int last = i; i >= 0; --i) {
      const bool works = LaneAt(i) == steps.lanes;
      if (works && !steps.together(list_[last], list_[i])) break;
      begin = i;
    }
    return begin;
  }

  int BeginOfGather(int index) const {
    if (!gathers_since_.empty()) return gathers_since_[index];
    return BeginOfStepBefore(index, {OfOneUnit, Lane::COMPUTE});
  }

  // Moves stand next to the work that they are for, or to the gather, which may
  // begin earlier than that.
  int BeginOfStepsBeforeFetch(int index) const {
    int user = index;
    int begin = index;
    while (user + 1 < list_.size() && !Works(user)) {
      ++user;
      if (list_[user].kind() != Instruction::GATHER_PARAMETERS) continue;
      begin = std::min(begin, BeginOfGather(user));
    }
    const Steps steps = {OfOneUnit, LaneAt(user)};
    for (int move = index; HandsOver(move); ++move) {
      begin = BeginOfStepBefore(begin, steps);
    }
    return BeginOfStepBefore(begin, steps);
  }
  int EndOfStepsAfterEvict(int index) const {
    int user = index;
    while (user > 0 && !Works(user)) --user;
    const Steps steps = {OfOneUnit, LaneAt(user)};
    int end = index;
    for (int move = index; move > 0 && HandsOver(move - 1); --move) {
      end = EndOfStepAfter(end, steps);
    }
    return EndOfStepAfter(end, steps);
  }
  bool Works(int i) const {
    return LaneAt(i) == Lane::COMPUTE || LaneAt(i) == Lane::HOST;
  }
  // Whether the next instruction moves on what this one moves.
  bool HandsOver(int i) const {
    return i + 1 < list_.size() && IsMove(list_[i].kind()) &&
           list_[i].kind() == list_[i + 1].kind() &&
           list_[i].operands(1).buffer() == list_[i + 1].operands(0).buffer();
  }

  const google::protobuf::RepeatedPtrField<Instruction>& list_;
  const Lanes& lanes_;
  const std::vector<int> gathers_since_;
};

// By buffer. Those that no instruction uses begin at -1.
std::vector<Life> LivesOf(const Program& program, const Uses& uses) {
  std::vector<Life> lives(program.buffers_size(), Life{-1, -1});
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Life time = uses.Of(i);
    for (const Instruction::Operand& operand :
         program.instructions(i).operands()) {
      Life& life = lives[operand.buffer()];
      const bool is_new = life.begin < 0;
      life.begin = is_new ? time.begin : std::min(life.begin, time.begin);
      life.end = std::max(life.end, time.end);
    }
  }
  return lives;
}

// When gathers of whole units have room, and where, in a role's programs.
class Gathers {
 public:
  // `bytes`: as in Draft.unsharded_bytes.
  Gathers(const Plan& plan, const Role& role,
          const absl::optional<int64_t>& bytes)
      : lanes_(plan.lanes()) {
    if (!bytes.has_value()) return;
    for (const Program& program : role.programs()) {
      absl::optional<GatherPlaces> places =
          PlaceGathers(program, Beside(program), *bytes);
      if (!places.has_value()) {
        WhenUsed(role);
        return;
      }
      bytes_ = std::max(bytes_, places->bytes);
      since_[program.kind()] = std::move(places->since);
      offsets_[program.kind()] = std::move(places->offsets);
    }
  }

  int64_t bytes() const { return bytes_; }  // of all that has a place
  Uses UsesOf(const Program& program) const {
    const auto since = since_.find(program.kind());
    if (since == since_.end()) return Uses(program, lanes_);
    return Uses(program, lanes_, since->second);
  }
  // nullopt: it has none yet.
  absl::optional<int64_t> PlaceOf(const Program& program, int buffer) const {
    const auto of_program = offsets_.find(program.kind());
    if (of_program == offsets_.end()) return absl::nullopt;
    const auto offset = of_program->second.find(buffer);
    if (offset == of_program->second.end()) return absl::nullopt;
    return offset->second;
  }

 private:
  // All have room while their unit is used, and no earlier.
  void WhenUsed(const Role& role) {
    bytes_ = 0;
    offsets_.clear();
    for (const Program& program : role.programs()) {
      std::vector<int>& since = since_[program.kind()];
      since.resize(program.instructions_size());
      std::iota(since.begin(), since.end(), 0);
    }
  }

  BesideGathers Beside(const Program& program) const {
    const std::vector<Life> lives = LivesOf(program, Uses(program, lanes_));
    BesideGathers beside;
    for (int b = 0; b < program.buffers_size(); ++b) {
      const Buffer& buffer = program.buffers(b);
      if (buffer.kind() != Buffer::UNSHARDED_GRADIENTS) continue;
      beside[b] = {.bytes = TierAligned(buffer.bytes(), DEVICE),
                   .life = lives[b]};
    }
    return beside;
  }

  const Lanes& lanes_;
  int64_t bytes_ = 0;
  std::map<Program::Kind, std::vector<int>> since_;
  std::map<Program::Kind, std::map<int, int64_t>> offsets_;
};

// Between TRAIN's last use of the oldest copy of a value and its first one of
// the newest.
struct Pause {
  int last_of_oldest = -1;
  int first_of_newest = std::numeric_limits<int>::max();

  // Then the two can be one copy.
  bool OldestIsFree() const { return last_of_oldest < first_of_newest; }
};

// Uses of a lasting value's copies by a rank's programs.
struct Lasting {
  std::vector<Buffer*> buffers;
  int offset_min = 0;
  int offset_max = 0;
  Pause pause;

  bool carried() const { return buffers.front()->carried(); }
};

// By kind, unit, micro-batch and output: the order in which slots are laid out.
using LastingValues =
    std::map<std::tuple<Buffer::Kind, int, int, int>, Lasting>;

Lasting& ValueOf(const Buffer& buffer, LastingValues& values) {
  const int unit = buffer.has_unit() ? buffer.unit() : -1;
  const int m = buffer.has_micro_batch() ? buffer.micro_batch() : -1;
  return values[{buffer.kind(), unit, m, buffer.output()}];
}

void FindPauses(const Program& train, const Gathers& gathers,
                LastingValues& values) {
  const Uses uses = gathers.UsesOf(train);
  for (int i = 0; i < train.instructions_size(); ++i) {
    const Instruction& instruction = train.instructions(i);
    const Life use = uses.Of(i);
    for (const Instruction::Operand& operand : instruction.operands()) {
      const Buffer& buffer = train.buffers(operand.buffer());
      if (!buffer.carried()) continue;
      Lasting& value = ValueOf(buffer, values);
      Pause& pause = value.pause;
      if (buffer.copy_offset() == value.offset_max) {
        pause.first_of_newest = std::min(pause.first_of_newest, use.begin);
      }
      if (buffer.copy_offset() == value.offset_min) {
        pause.last_of_oldest = std::max(pause.last_of_oldest, use.end);
      }
    }
  }
}

int CopiesNeeded(const Lasting& value) {
  const Buffer::Kind kind = value.buffers.front()->kind();
  // The version that STEP writes takes the place of the oldest one.
  if (kind == Buffer::PARAMETERS) return std::max(1, -value.offset_min);
  // Of every step under way: from the one that is summed to the last one that
  // anything is computed of ahead. Each is zero before the first program that
  // adds to it begins.
  if (kind == Buffer::SCALARS) return 1 + value.offset_max - value.offset_min;
  // One of a state's copies is whole while the other is written.
  if (IsStateCopy(kind)) return 2;
  const int apart = value.offset_max - value.offset_min;
  return apart > 0 && value.pause.OldestIsFree() ? apart : apart + 1;
}

// Instructions of the programs that stand before this one.
int OffsetOf(const Role& role, Program::Kind kind) {
  int offset = 0;
  for (const Program& program : role.programs()) {
    if (program.kind() == kind) break;
    offset += program.instructions_size();
  }
  return offset;
}

// Values of one line item and tier that share slots.
struct Sharers {
  std::vector<Tenant> tenants;
  std::vector<std::pair<Buffer*, int>> buffers;  // and its index in `tenants`

  void Add(const Life& life, const std::vector<Buffer*>& of_one_value) {
    for (Buffer* const buffer : of_one_value) {
      buffers.push_back({buffer, static_cast<int>(tenants.size())});
    }
    const Buffer& first = *of_one_value.front();
    tenants.push_back(
        {.bytes = TierAligned(first.bytes(), TierOf(first)), .life = life});
  }
};
using SharersByItem = std::map<std::pair<Tier, std::string>, Sharers>;

Sharers& SharersOf(const Buffer& buffer, SharersByItem& sharers) {
  return sharers[{TierOf(buffer), LineItem(buffer)}];
}

LastingValues LastingValuesOf(const Gathers& gathers, Role& role) {
  LastingValues values;
  for (Program& program : *role.mutable_programs()) {
    for (Buffer& buffer : *program.mutable_buffers()) {
      if (!OutlivesProgram(buffer)) continue;
      Lasting& value = ValueOf(buffer, values);
      value.buffers.push_back(&buffer);
      value.offset_min = std::min(value.offset_min, buffer.copy_offset());
      value.offset_max = std::max(value.offset_max, buffer.copy_offset());
    }
  }
  FindPauses(*StepProgram(role), gathers, values);
  return values;
}

// Slots for what is always there. A carried value that has one copy is not,
// and becomes a sharer.
void AssignLasting(const Gathers& gathers, Role& role, SharersByItem& sharers) {
  const int step_begin = OffsetOf(role, StepProgram(role)->kind());
  for (const auto& [name, value] : LastingValuesOf(gathers, role)) {
    const Buffer& first = *value.buffers.front();
    const int copies = CopiesNeeded(value);
    for (Buffer* const buffer : value.buffers) {
      CHECK_EQ(buffer->bytes(), first.bytes()) << LineItem(buffer->kind());
      if (buffer->copy_offset() >= copies || copies == 1) {
        buffer->set_copy_offset(buffer->copy_offset() % copies);
      }
    }
    if (first.carried() && copies == 1) {
      // In use all the time, but for the pause of a step.
      SharersOf(first, sharers)
          .Add({.begin = step_begin + value.pause.first_of_newest,
                .end = step_begin + value.pause.last_of_oldest},
               value.buffers);
      continue;
    }
    const int slot = AddSlot(first, first.bytes(), role);
    if (copies > 1) role.mutable_slots(slot)->set_copies(copies);
    for (Buffer* const buffer : value.buffers) buffer->set_slot(slot);
  }
}

// And a slot for what gathers have placed.
void AddTransients(const Gathers& gathers, Role& role, SharersByItem& sharers) {
  int placed = -1;
  for (Program& program : *role.mutable_programs()) {
    const int offset = OffsetOf(role, program.kind());
    std::vector<Life> lives = LivesOf(program, gathers.UsesOf(program));
    for (int b = 0; b < program.buffers_size(); ++b) {
      Buffer& buffer = *program.mutable_buffers(b);
      if (OutlivesProgram(buffer)) continue;
      if (const auto place = gathers.PlaceOf(program, b)) {
        if (placed < 0) placed = AddSlot(buffer, gathers.bytes(), role);
        buffer.set_slot(placed);
        buffer.set_offset(*place);
        continue;
      }
      lives[b].begin += offset;
      lives[b].end += offset;
      SharersOf(buffer, sharers).Add(lives[b], {&buffer});
    }
  }
}

void Assign(const Gathers& gathers, Role& role) {
  SharersByItem by_item;
  AssignLasting(gathers, role, by_item);
  AddTransients(gathers, role, by_item);
  for (auto& [item, sharers] : by_item) {
    const int first = role.slots_size();
    for (const int64_t bytes : PackBuffers(sharers.tenants)) {
      AddSlot(*sharers.buffers.front().first, bytes, role);
    }
    for (const auto& [buffer, tenant] : sharers.buffers) {
      const auto [slot, offset] = sharers.tenants[tenant].place;
      buffer->set_slot(first + slot);
      buffer->set_offset(offset);
    }
  }
}

}  // namespace

void AssignSlots(Draft& draft) {
  draft.unsharded_bytes.resize(draft.plan.roles_size());
  for (int r = 0; r < draft.plan.roles_size(); ++r) {
    Role& role = *draft.plan.mutable_roles(r);
    Assign(Gathers(draft.plan, role, draft.unsharded_bytes[r]), role);
  }
}

int64_t LeastBytes(const Plan& plan, Role role, absl::string_view item) {
  const Gathers gathers(plan, role, absl::nullopt);
  SharersByItem by_item;
  AssignLasting(gathers, role, by_item);
  AddTransients(gathers, role, by_item);
  int64_t bytes = 0;
  for (const Slot& slot : role.slots()) {
    if (slot.item() == item) bytes += slot.bytes() * CopiesOf(slot);
  }
  for (const auto& [tier_and_item, sharers] : by_item) {
    if (tier_and_item.second == item) bytes += MostAtOnce(sharers.tenants);
  }
  return bytes;
}

int64_t SlotBytes(const Plan& plan, Role role, Tier tier) {
  Assign(Gathers(plan, role, absl::nullopt), role);
  return BytesIn(role, tier);
}

}  // namespace troupe
