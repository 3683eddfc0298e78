#include "scheduler/passes/assign_slots.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/lanes.h"

namespace troupe {
namespace {

// When a buffer is in use: instructions [begin, end] of its program, programs
// counted one after the other since a rank runs one at a time.
struct Life {
  int begin = 0;
  int end = 0;
};

struct Transient {
  Buffer* buffer = nullptr;
  Life life;
};

// When a slot is free, both ends included.
struct Gap {
  Life free;
  int slot = 0;
};

// The slots of one line item and one size that others may live in, as their
// gaps. Buffers are placed in the order in which their lives begin, so that a
// gap is looked at once its own beginning has come: each takes logarithmic
// time.
class Gaps {
 public:
  explicit Gaps(int64_t bytes) : bytes_(bytes) {}

  int64_t bytes() const { return bytes_; }

  void Add(const Gap& gap) {
    if (gap.free.begin <= gap.free.end) later_.push(gap);
  }

  // A gap that has room for this life, which it gives to it: the one that ends
  // soonest, and of those that which was free last. Negative: there is none.
  // REQUIRES that no life began later since Rewind.
  int Take(const Life& life) {
    while (!later_.empty() && later_.top().free.begin <= life.begin) {
      open_.insert(later_.top());
      later_.pop();
    }
    const auto found = open_.lower_bound(
        {.free = {.begin = std::numeric_limits<int>::max(), .end = life.end}});
    if (found == open_.end()) return -1;
    const Gap gap = *found;
    open_.erase(found);
    past_.push_back({{gap.free.begin, life.begin - 1}, gap.slot});
    Add({{life.end + 1, gap.free.end}, gap.slot});
    return gap.slot;
  }

  // Lives may begin anywhere again.
  void Rewind() {
    for (const Gap& gap : open_) later_.push(gap);
    open_.clear();
    for (const Gap& gap : past_) Add(gap);
    past_.clear();
  }

 private:
  struct BeginsLater {
    bool operator()(const Gap& a, const Gap& b) const {
      return std::make_pair(a.free.begin, a.slot) >
             std::make_pair(b.free.begin, b.slot);
    }
  };
  struct EndsSooner {
    bool operator()(const Gap& a, const Gap& b) const {
      return std::make_tuple(a.free.end, -a.free.begin, a.slot) <
             std::make_tuple(b.free.end, -b.free.begin, b.slot);
    }
  };

  int64_t bytes_;
  std::priority_queue<Gap, std::vector<Gap>, BeginsLater> later_;
  std::set<Gap, EndsSooner> open_;
  std::vector<Gap> past_;  // before the lives of now
};

// By line item, then size, smallest first.
using SharedSlots = std::map<std::string, std::map<int64_t, Gaps>>;

Gaps& GapsOf(const Buffer& buffer, SharedSlots& slots) {
  return slots[LineItem(buffer.kind())]
      .try_emplace(buffer.bytes(), buffer.bytes())
      .first->second;
}

// Workers lay slots out on cache lines, so that is what a slot costs.
constexpr int64_t kSlotAlignment = 64;

int AddSlot(const Buffer& buffer, Role& role) {
  const int64_t bytes = buffer.bytes();
  Slot& slot = *role.add_slots();
  slot.set_item(LineItem(buffer.kind()));
  slot.set_tier(HomeTier(buffer.kind()));
  slot.set_bytes((bytes + kSlotAlignment - 1) / kSlotAlignment *
                 kSlotAlignment);
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
// while the step of computation next to it runs too. So what a rank sends or
// scatters is not written over before the next step is done, and what it
// receives or gathers has room from the beginning of the step before: otherwise
// they would wait for each other instead of overlapping.
class Uses {
 public:
  Uses(const Program& program, const Lanes& lanes)
      : list_(program.instructions()), lanes_(lanes) {}

  Life Of(int index) const {
    switch (list_[index].kind()) {
      case Instruction::SEND:
        return {index, EndOfStepAfter(index, OfOneStep)};
      case Instruction::RECV:
        return {BeginOfStepBefore(index, OfOneStep), index};
      case Instruction::SCATTER_GRADS:
        return {index, EndOfStepAfter(index, OfOneUnit)};
      case Instruction::GATHER_PARAMETERS:
        return {BeginOfStepBefore(index, OfOneUnit), index};
      default:
        return {index, index};
    }
  }

 private:
  // Whether computation belongs to one step.
  using Together = bool (*)(const Instruction& a, const Instruction& b);

  bool Computes(int i) const {
    return KindOfLane(lanes_, list_[i].lane()) == Lane::COMPUTE;
  }
  int EndOfStepAfter(int index, Together together) const {
    int end = index;
    int i = index + 1;
    while (i < list_.size() && !Computes(i)) ++i;
    for (int first = i; i < list_.size(); ++i) {
      if (Computes(i) && !together(list_[first], list_[i])) break;
      end = i;
    }
    return end;
  }
  int BeginOfStepBefore(int index, Together together) const {
    int begin = index;
    int i = index - 1;
    while (i >= 0 && !Computes(i)) --i;
    for (int last = i; i >= 0; --i) {
      if (Computes(i) && !together(list_[last], list_[i])) break;
      begin = i;
    }
    return begin;
  }

  const google::protobuf::RepeatedPtrField<Instruction>& list_;
  const Lanes& lanes_;
};

// Between TRAIN's last use of the oldest copy of a value and its first one of
// the newest.
struct Pause {
  int last_of_oldest = -1;
  int first_of_newest = std::numeric_limits<int>::max();

  // Then the two can be one copy.
  bool OldestIsFree() const { return last_of_oldest < first_of_newest; }
};

// Uses of a value's copies by a rank's programs.
struct OwnSlot {
  std::vector<Buffer*> buffers;
  int offset_min = 0;
  int offset_max = 0;
  Pause pause;

  bool carried() const { return buffers.front()->carried(); }
};

// By kind, then unit: the order in which the slots are laid out.
using OwnSlots = std::map<std::tuple<Buffer::Kind, int, int>, OwnSlot>;

OwnSlot& OwnerOf(const Buffer& buffer, OwnSlots& owners) {
  const int unit = buffer.has_unit() ? buffer.unit() : -1;
  const int m = buffer.has_micro_batch() ? buffer.micro_batch() : -1;
  return owners[{buffer.kind(), unit, m}];
}

void FindPauses(const Program& train, const Lanes& lanes, OwnSlots& owners) {
  const Uses uses(train, lanes);
  for (int i = 0; i < train.instructions_size(); ++i) {
    const Instruction& instruction = train.instructions(i);
    const Life use = uses.Of(i);
    for (const Instruction::Operand& operand : instruction.operands()) {
      const Buffer& buffer = train.buffers(operand.buffer());
      if (!buffer.carried()) continue;
      OwnSlot& own = OwnerOf(buffer, owners);
      Pause& pause = own.pause;
      if (buffer.copy_offset() == own.offset_max) {
        pause.first_of_newest = std::min(pause.first_of_newest, use.begin);
      }
      if (buffer.copy_offset() == own.offset_min) {
        pause.last_of_oldest = std::max(pause.last_of_oldest, use.end);
      }
    }
  }
}

int CopiesNeeded(const OwnSlot& own) {
  const Buffer::Kind kind = own.buffers.front()->kind();
  // The version that STEP writes takes the place of the oldest one.
  if (kind == Buffer::PARAMETERS) return std::max(1, -own.offset_min);
  // A step's scalars are zero before its program begins.
  if (kind == Buffer::SCALARS) return 1 - own.offset_min;
  const int apart = own.offset_max - own.offset_min;
  return apart > 0 && own.pause.OldestIsFree() ? apart : apart + 1;
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

// The slots in which others may live for a while are returned.
SharedSlots AssignOwn(const Lanes& lanes, Role& role) {
  OwnSlots owners;
  for (Program& program : *role.mutable_programs()) {
    for (Buffer& buffer : *program.mutable_buffers()) {
      if (!HasOwnSlot(buffer)) continue;
      OwnSlot& own = OwnerOf(buffer, owners);
      own.buffers.push_back(&buffer);
      own.offset_min = std::min(own.offset_min, buffer.copy_offset());
      own.offset_max = std::max(own.offset_max, buffer.copy_offset());
    }
  }
  FindPauses(*FindProgram(role, Program::TRAIN), lanes, owners);
  const int train_begin = OffsetOf(role, Program::TRAIN);
  SharedSlots shared;
  for (const auto& [name, own] : owners) {
    const int copies = CopiesNeeded(own);
    const int slot = AddSlot(*own.buffers.front(), role);
    if (copies > 1) role.mutable_slots(slot)->set_copies(copies);
    for (Buffer* const buffer : own.buffers) {
      CHECK_EQ(buffer->bytes(), own.buffers.front()->bytes())
          << LineItem(buffer->kind());
      buffer->set_slot(slot);
      if (buffer->copy_offset() >= copies || copies == 1) {
        buffer->set_copy_offset(buffer->copy_offset() % copies);
      }
    }
    if (own.carried() && copies == 1) {
      // In use all the time, but for the gap of TRAIN.
      GapsOf(*own.buffers.front(), shared)
          .Add({{train_begin + own.pause.last_of_oldest + 1,
                 train_begin + own.pause.first_of_newest - 1},
                slot});
    }
  }
  return shared;
}

std::vector<Transient> TransientsOf(const Lanes& lanes, Role& role) {
  std::vector<Transient> transients;
  for (Program& program : *role.mutable_programs()) {
    const int offset = OffsetOf(role, program.kind());
    std::vector<Life> lives(program.buffers_size(), Life{-1, -1});
    const Uses uses(program, lanes);
    for (int i = 0; i < program.instructions_size(); ++i) {
      const Life time = uses.Of(i);
      for (const Instruction::Operand& operand :
           program.instructions(i).operands()) {
        Life& life = lives[operand.buffer()];
        const bool is_new = life.begin < 0;
        life.begin = is_new ? offset + time.begin
                            : std::min(life.begin, offset + time.begin);
        life.end = std::max(life.end, offset + time.end);
      }
    }
    for (int b = 0; b < program.buffers_size(); ++b) {
      if (HasOwnSlot(program.buffers(b))) continue;
      transients.push_back({program.mutable_buffers(b), lives[b]});
    }
  }
  return transients;
}

// The smallest slot that is free, or a new one.
int SlotFor(const Transient& transient, std::map<int64_t, Gaps>& of_item,
            Role& role) {
  const int64_t bytes = transient.buffer->bytes();
  for (auto at = of_item.lower_bound(bytes); at != of_item.end(); ++at) {
    const int slot = at->second.Take(transient.life);
    if (slot >= 0) return slot;
  }
  const int slot = AddSlot(*transient.buffer, role);
  Gaps& own = of_item.at(bytes);
  own.Add({{0, std::numeric_limits<int>::max()}, slot});
  CHECK_EQ(own.Take(transient.life), slot);
  return slot;
}

void AssignShared(const Lanes& lanes, SharedSlots slots, Role& role) {
  std::vector<Transient> transients = TransientsOf(lanes, role);
  std::stable_sort(transients.begin(), transients.end(),
                   [](const Transient& a, const Transient& b) {
                     return std::make_tuple(-a.buffer->bytes(), a.life.begin) <
                            std::make_tuple(-b.buffer->bytes(), b.life.begin);
                   });
  int64_t bytes = 0;
  for (const Transient& transient : transients) {
    Buffer& buffer = *transient.buffer;
    GapsOf(buffer, slots);
    if (buffer.bytes() != bytes) {
      for (auto& [item, of_item] : slots) {
        for (auto& [size, gaps] : of_item) gaps.Rewind();
      }
      bytes = buffer.bytes();
    }
    buffer.set_slot(
        SlotFor(transient, slots.at(LineItem(buffer.kind())), role));
  }
}

}  // namespace

void AssignSlots(Draft& draft) {
  for (Role& role : *draft.plan.mutable_roles()) {
    const Lanes& lanes = draft.plan.lanes();
    AssignShared(lanes, AssignOwn(lanes, role), role);
  }
}

}  // namespace troupe
