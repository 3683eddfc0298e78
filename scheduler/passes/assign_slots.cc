#include "scheduler/passes/assign_slots.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "proto/base/check.h"
#include "proto/plan/buffer_kind.h"

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

// A slot under construction: its uses, by begin, with their ends.
struct SharedSlot {
  std::string item;
  int64_t bytes = 0;
  int index = 0;
  std::map<int, int> uses;

  bool FreeDuring(const Life& life) const {
    const auto next = uses.upper_bound(life.end);
    return next == uses.begin() || std::prev(next)->second < life.begin;
  }
};

// Workers lay slots out on cache lines, so that is what a slot costs.
constexpr int64_t kSlotAlignment = 64;

int AddSlot(const Buffer& buffer, RankPlan& rank) {
  const int64_t bytes = buffer.bytes();
  Slot& slot = *rank.add_slots();
  slot.set_item(LineItem(buffer.kind()));
  slot.set_tier(HomeTier(buffer.kind()));
  slot.set_bytes((bytes + kSlotAlignment - 1) / kSlotAlignment *
                 kSlotAlignment);
  return rank.slots_size() - 1;
}

// Whether a stage's units do this for one micro-batch one after the other.
bool OfOneStep(const Instruction& a, const Instruction& b) {
  const bool forwards =
      (a.kind() == Instruction::FORWARD) == (b.kind() == Instruction::FORWARD);
  return forwards && a.micro_batch() == b.micro_batch() &&
         a.ahead() == b.ahead();
}

// When the instruction uses its buffers: while it runs, and transfers while the
// step of computation next to them runs too. So what a rank sends is not
// written over before the next step is done, and what it receives has room from
// the beginning of the step before: otherwise they would wait for each other
// instead of overlapping.
Life UseOf(const Program& program, int index) {
  const auto& list = program.instructions();
  Life use = {index, index};
  const Instruction::Kind kind = list[index].kind();
  if (kind == Instruction::SEND) {
    int i = index + 1;
    while (i < list.size() && list[i].lane() != COMPUTE) ++i;
    for (int first = i; i < list.size(); ++i) {
      if (list[i].lane() == COMPUTE && !OfOneStep(list[first], list[i])) break;
      use.end = i;
    }
  } else if (kind == Instruction::RECV) {
    int i = index - 1;
    while (i >= 0 && list[i].lane() != COMPUTE) --i;
    for (int last = i; i >= 0; --i) {
      if (list[i].lane() == COMPUTE && !OfOneStep(list[last], list[i])) break;
      use.begin = i;
    }
  }
  return use;
}

// Between TRAIN's last use of the oldest copy of a value and its first one of
// the newest.
struct Gap {
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
  Gap gap;

  bool carried() const { return buffers.front()->carried(); }
};

// By kind, then unit: the order in which the slots are laid out.
using OwnSlots = std::map<std::tuple<Buffer::Kind, int, int>, OwnSlot>;

OwnSlot& OwnerOf(const Buffer& buffer, OwnSlots& owners) {
  const int unit = buffer.has_unit() ? buffer.unit() : -1;
  const int m = buffer.has_micro_batch() ? buffer.micro_batch() : -1;
  return owners[{buffer.kind(), unit, m}];
}

void FindGaps(const Program& train, OwnSlots& owners) {
  for (int i = 0; i < train.instructions_size(); ++i) {
    const Instruction& instruction = train.instructions(i);
    const Life use = UseOf(train, i);
    for (const Instruction::Operand& operand : instruction.operands()) {
      const Buffer& buffer = train.buffers(operand.buffer());
      if (!buffer.carried()) continue;
      OwnSlot& own = OwnerOf(buffer, owners);
      Gap& gap = own.gap;
      if (buffer.copy_offset() == own.offset_max) {
        gap.first_of_newest = std::min(gap.first_of_newest, use.begin);
      }
      if (buffer.copy_offset() == own.offset_min) {
        gap.last_of_oldest = std::max(gap.last_of_oldest, use.end);
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
  return apart > 0 && own.gap.OldestIsFree() ? apart : apart + 1;
}

// Instructions of the programs that stand before this one.
int OffsetOf(const RankPlan& rank, Program::Kind kind) {
  int offset = 0;
  for (const Program& program : rank.programs()) {
    if (program.kind() == kind) break;
    offset += program.instructions_size();
  }
  return offset;
}

// In use all the time, but for the gap of TRAIN.
SharedSlot InGap(const Buffer& buffer, const Gap& gap, int train_begin) {
  SharedSlot slot = {.item = LineItem(buffer.kind()),
                     .bytes = buffer.bytes(),
                     .index = buffer.slot()};
  slot.uses[0] = train_begin + gap.last_of_oldest;
  slot.uses[train_begin + gap.first_of_newest] =
      std::numeric_limits<int>::max();
  return slot;
}

// The slots in which others may live for a while are returned.
std::vector<SharedSlot> AssignOwn(RankPlan& rank) {
  OwnSlots owners;
  for (Program& program : *rank.mutable_programs()) {
    for (Buffer& buffer : *program.mutable_buffers()) {
      if (!HasOwnSlot(buffer)) continue;
      OwnSlot& own = OwnerOf(buffer, owners);
      own.buffers.push_back(&buffer);
      own.offset_min = std::min(own.offset_min, buffer.copy_offset());
      own.offset_max = std::max(own.offset_max, buffer.copy_offset());
    }
  }
  FindGaps(*FindProgram(rank, Program::TRAIN), owners);
  const int train_begin = OffsetOf(rank, Program::TRAIN);
  std::vector<SharedSlot> shared;
  for (const auto& [name, own] : owners) {
    const int copies = CopiesNeeded(own);
    const int slot = AddSlot(*own.buffers.front(), rank);
    if (copies > 1) rank.mutable_slots(slot)->set_copies(copies);
    for (Buffer* const buffer : own.buffers) {
      CHECK_EQ(buffer->bytes(), own.buffers.front()->bytes())
          << LineItem(buffer->kind());
      buffer->set_slot(slot);
      if (buffer->copy_offset() >= copies || copies == 1) {
        buffer->set_copy_offset(buffer->copy_offset() % copies);
      }
    }
    if (own.carried() && copies == 1) {
      shared.push_back(InGap(*own.buffers.front(), own.gap, train_begin));
    }
  }
  return shared;
}

std::vector<Transient> TransientsOf(RankPlan& rank) {
  std::vector<Transient> transients;
  for (Program& program : *rank.mutable_programs()) {
    const int offset = OffsetOf(rank, program.kind());
    std::vector<Life> lives(program.buffers_size(), Life{-1, -1});
    for (int i = 0; i < program.instructions_size(); ++i) {
      const Life time = UseOf(program, i);
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

void AssignShared(RankPlan& rank, std::vector<SharedSlot> slots) {
  std::vector<Transient> transients = TransientsOf(rank);
  std::stable_sort(transients.begin(), transients.end(),
                   [](const Transient& a, const Transient& b) {
                     return std::make_tuple(-a.buffer->bytes(), a.life.begin) <
                            std::make_tuple(-b.buffer->bytes(), b.life.begin);
                   });
  const auto larger = [](const SharedSlot& a, const SharedSlot& b) {
    return a.bytes > b.bytes;
  };
  std::stable_sort(slots.begin(), slots.end(), larger);
  for (const Transient& transient : transients) {
    Buffer& buffer = *transient.buffer;
    const std::string item = LineItem(buffer.kind());
    // The smallest.
    auto slot = std::find_if(slots.rbegin(), slots.rend(), [&](const auto& s) {
      return s.bytes >= buffer.bytes() && s.item == item &&
             s.FreeDuring(transient.life);
    });
    if (slot == slots.rend()) {
      const SharedSlot made = {.item = item,
                               .bytes = buffer.bytes(),
                               .index = AddSlot(buffer, rank)};
      slot = std::make_reverse_iterator(std::next(slots.insert(
          std::upper_bound(slots.begin(), slots.end(), made, larger), made)));
    }
    slot->uses[transient.life.begin] = transient.life.end;
    buffer.set_slot(slot->index);
  }
}

}  // namespace

void AssignSlots(Draft& draft) {
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    AssignShared(rank, AssignOwn(rank));
  }
}

}  // namespace troupe
