#include "scheduler/passes/assign_slots.h"

#include <algorithm>
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

void AssignResident(RankPlan& rank) {
  // By kind, then unit: the order in which the slots are laid out.
  std::map<std::pair<Buffer::Kind, int>, std::vector<Buffer*>> resident;
  for (Program& program : *rank.mutable_programs()) {
    for (Buffer& buffer : *program.mutable_buffers()) {
      if (!IsResident(buffer.kind())) continue;
      const int unit = buffer.has_unit() ? buffer.unit() : -1;
      resident[{buffer.kind(), unit}].push_back(&buffer);
    }
  }
  for (const auto& [name, buffers] : resident) {
    const int slot = AddSlot(*buffers.front(), rank);
    for (Buffer* const buffer : buffers) {
      CHECK_EQ(buffer->bytes(), buffers.front()->bytes())
          << LineItem(name.first);
      buffer->set_slot(slot);
    }
  }
}

std::vector<Transient> TransientsOf(RankPlan& rank) {
  std::vector<Transient> transients;
  int offset = 0;
  for (Program& program : *rank.mutable_programs()) {
    std::vector<Life> lives(program.buffers_size(), Life{-1, -1});
    for (int i = 0; i < program.instructions_size(); ++i) {
      const auto use = [&](int buffer) {
        if (lives[buffer].begin < 0) lives[buffer].begin = offset + i;
        lives[buffer].end = offset + i;
      };
      for (const int buffer : program.instructions(i).reads()) use(buffer);
      for (const int buffer : program.instructions(i).writes()) use(buffer);
    }
    for (int b = 0; b < program.buffers_size(); ++b) {
      if (IsResident(program.buffers(b).kind())) continue;
      transients.push_back({program.mutable_buffers(b), lives[b]});
    }
    offset += program.instructions_size();
  }
  return transients;
}

void AssignShared(RankPlan& rank) {
  std::vector<Transient> transients = TransientsOf(rank);
  std::stable_sort(transients.begin(), transients.end(),
                   [](const Transient& a, const Transient& b) {
                     return std::make_tuple(-a.buffer->bytes(), a.life.begin) <
                            std::make_tuple(-b.buffer->bytes(), b.life.begin);
                   });
  std::vector<SharedSlot> slots;  // smaller and smaller
  for (const Transient& transient : transients) {
    Buffer& buffer = *transient.buffer;
    const std::string item = LineItem(buffer.kind());
    auto slot = std::find_if(slots.rbegin(), slots.rend(), [&](const auto& s) {
      return s.item == item && s.FreeDuring(transient.life);
    });
    if (slot == slots.rend()) {
      const int index = AddSlot(buffer, rank);
      slots.push_back({.item = item, .bytes = buffer.bytes(), .index = index});
      slot = slots.rbegin();
    }
    slot->uses[transient.life.begin] = transient.life.end;
    buffer.set_slot(slot->index);
  }
}

}  // namespace

void AssignSlots(Draft& draft) {
  for (RankPlan& rank : *draft.plan.mutable_ranks()) {
    AssignResident(rank);
    AssignShared(rank);
  }
}

}  // namespace troupe
