#include "worker/rank/rank_memory.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"

namespace troupe {
namespace {

// For each slot its place among the slots of its line item: the unit whose
// gradients it holds, else nothing.
std::vector<int> GradientUnits(const Role& role) {
  std::vector<int> units(role.slots_size(), -1);
  for (const Program& program : role.programs()) {
    for (const Buffer& buffer : program.buffers()) {
      if (buffer.kind() != Buffer::PARAMETER_GRADIENTS) continue;
      units.at(buffer.slot()) = buffer.unit();
    }
  }
  return units;
}

}  // namespace

absl::StatusOr<RankMemory> RankMemory::Create(const Role& role,
                                              const TierArenas& arenas) {
  std::map<std::pair<Tier, std::string>, std::vector<int>> items;
  for (int i = 0; i < role.slots_size(); ++i) {
    items[{role.slots(i).tier(), role.slots(i).item()}].push_back(i);
  }
  const std::vector<int> gradient_units = GradientUnits(role);
  RankMemory memory;
  for (const Slot& slot : role.slots()) {
    memory.places_.push_back({.slot = slot});
  }
  for (auto& [key, slots] : items) {
    std::stable_sort(slots.begin(), slots.end(), [&](int a, int b) {
      return gradient_units[a] < gradient_units[b];
    });
    size_t bytes = 0;
    for (const int slot : slots) {
      bytes += TierAligned(role.slots(slot).bytes(), key.first) *
               CopiesOf(role.slots(slot));
    }
    ASSIGN_OR_RETURN(Arena * arena, arenas.Find(key.first));
    ASSIGN_OR_RETURN(ArenaBlock block, arena->Allocate(key.second, bytes));
    char* next = block.data();
    for (const int slot : slots) {
      const int64_t copy_bytes =
          TierAligned(role.slots(slot).bytes(), key.first);
      for (int copy = 0; copy < CopiesOf(role.slots(slot)); ++copy) {
        memory.places_[slot].copies.push_back(copy_bytes > 0 ? next : nullptr);
        next += copy_bytes;
      }
    }
    memory.blocks_.push_back(std::move(block));
  }
  return memory;
}

char* RankMemory::At(const Buffer& buffer, int64_t step) const {
  const Place& place = places_.at(buffer.slot());
  return place.copies[CopyAt(buffer, place.slot, step)] + buffer.offset();
}

std::vector<char*> RankMemory::Copies(const Buffer& buffer) const {
  std::vector<char*> copies = places_.at(buffer.slot()).copies;
  for (char*& copy : copies) copy += buffer.offset();
  return copies;
}

const Buffer* FindResident(const Role& role, Buffer::Kind kind,
                           absl::optional<int> unit) {
  for (const Program& program : role.programs()) {
    for (const Buffer& buffer : program.buffers()) {
      if (buffer.kind() != kind) continue;
      if (unit.has_value() != buffer.has_unit()) continue;
      if (!unit.has_value() || *unit == buffer.unit()) return &buffer;
    }
  }
  return nullptr;
}

}  // namespace troupe
