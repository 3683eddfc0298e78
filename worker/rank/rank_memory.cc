#include "worker/rank/rank_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "proto/base/status.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/memory.h"
#include "proto/plan/operand.h"

namespace troupe {
namespace {

using Item = std::pair<Tier, std::string>;

// For each slot its place among the slots of its line item: the unit whose
// gradients rest there, else nothing.
std::vector<int> GradientUnits(const Role& role) {
  std::vector<int> units(role.slots_size(), -1);
  for (const Program& program : role.programs()) {
    for (const Buffer& buffer : program.buffers()) {
      if (buffer.kind() != Buffer::PARAMETER_GRADIENTS) continue;
      if (OutlivesProgram(buffer)) units.at(buffer.slot()) = buffer.unit();
    }
  }
  return units;
}

Item ItemOf(const Slot& slot) { return {slot.tier(), slot.item()}; }

// The slots of each line item, in the order in which they lie there.
std::map<Item, std::vector<int>> SlotsByItem(const Role& role) {
  std::map<Item, std::vector<int>> items;
  for (int i = 0; i < role.slots_size(); ++i) {
    items[ItemOf(role.slots(i))].push_back(i);
  }
  const std::vector<int> gradient_units = GradientUnits(role);
  for (auto& [item, slots] : items) {
    std::stable_sort(slots.begin(), slots.end(), [&](int a, int b) {
      return gradient_units[a] < gradient_units[b];
    });
  }
  return items;
}

// Of one copy, with what is left free behind it.
int64_t RoomOf(const Slot& slot) {
  return TierAligned(slot.bytes(), slot.tier());
}

// The line items of the host tier that moves to and from nvme touch.
std::set<Item> ItemsMovedByNvme(const Role& role) {
  std::set<Item> items;
  for (const Program& program : role.programs()) {
    for (const Instruction& instruction : program.instructions()) {
      if (!IsMove(instruction.kind())) continue;
      std::set<Item> of_move;
      for (const Instruction::Operand& operand : instruction.operands()) {
        const int slot = program.buffers(operand.buffer()).slot();
        of_move.insert(ItemOf(role.slots(slot)));
      }
      const Item& last = *of_move.rbegin();
      if (last.first == NVME) items.insert(of_move.begin(), of_move.end());
    }
  }
  return items;
}

TierAddress FirstOf(Tier tier, const ArenaBlock& block, uint64_t nvme_bytes) {
  if (tier == NVME) return TierAddress::InNvme(nvme_bytes);
  return tier == HOST ? TierAddress::InHost(block.data())
                      : TierAddress(block.data());
}

}  // namespace

absl::StatusOr<RankMemory> RankMemory::Create(const Role& role,
                                              const TierArenas& arenas,
                                              MemoryOwner owner) {
  RankMemory memory(arenas);
  for (const Slot& slot : role.slots()) {
    memory.places_.push_back({.slot = slot});
  }
  const std::set<Item> moved = ItemsMovedByNvme(role);
  uint64_t nvme_bytes = 0;
  for (const auto& [item, slots] : SlotsByItem(role)) {
    size_t bytes = 0;
    for (const int slot : slots) {
      bytes += RoomOf(role.slots(slot)) * CopiesOf(role.slots(slot));
    }
    ASSIGN_OR_RETURN(Arena * arena, arenas.Find(item.first));
    const bool copies = item.second == kCopiesItem;
    ArenaBlock block;
    if (copies && owner.copies.bytes() == bytes) {
      block = std::move(owner.copies);
    } else {
      ASSIGN_OR_RETURN(block, arena->Allocate(item.second, bytes));
    }
    TierAddress next = FirstOf(item.first, block, nvme_bytes);
    for (const int slot : slots) {
      const int64_t copy_bytes = RoomOf(role.slots(slot));
      for (int copy = 0; copy < CopiesOf(role.slots(slot)); ++copy) {
        memory.places_[slot].copies.push_back(copy_bytes > 0 ? next
                                                             : TierAddress());
        if (copy_bytes > 0) next = next + copy_bytes;
      }
    }
    if (item.first == NVME) nvme_bytes += bytes;
    if (item.first == HOST && moved.count(item) > 0 && bytes > 0) {
      memory.moved_.push_back({block.data(), bytes});
    }
    if (copies) {
      memory.copies_ = std::move(block);
    } else {
      memory.blocks_.push_back(std::move(block));
    }
  }
  if (nvme_bytes > 0) {
    ASSIGN_OR_RETURN(Arena * host, arenas.Find(HOST));
    const int64_t sum_bytes = ChecksumBytes(static_cast<int64_t>(nvme_bytes));
    ASSIGN_OR_RETURN(ArenaBlock sums,
                     host->Allocate(kChecksumsItem, sum_bytes));
    ASSIGN_OR_RETURN(
        memory.spill_,
        SpillFile::Create({.directory = arenas.nvme().directory,
                           .bytes = nvme_bytes,
                           .owner = {.cluster = arenas.nvme().cluster,
                                     .job = owner.job,
                                     .rank = owner.rank},
                           .sums = {reinterpret_cast<uint32_t*>(sums.data()),
                                    sums.bytes() / sizeof(uint32_t)}}));
    memory.blocks_.push_back(std::move(sums));
  }
  return memory;
}

TierAddress RankMemory::At(const Buffer& buffer, int64_t step) const {
  const Place& place = places_.at(buffer.slot());
  const TierAddress& copy = place.copies[CopyAt(buffer, place.slot, step)];
  return copy ? copy + buffer.offset() : copy;
}

std::vector<TierAddress> RankMemory::Copies(const Buffer& buffer) const {
  std::vector<TierAddress> copies = places_.at(buffer.slot()).copies;
  for (TierAddress& copy : copies) {
    if (copy) copy = copy + buffer.offset();
  }
  return copies;
}

const Buffer* FindResident(const Role& role, Buffer::Kind kind,
                           absl::optional<int> unit) {
  for (const Program& program : role.programs()) {
    for (const Buffer& buffer : program.buffers()) {
      if (buffer.kind() != kind || !OutlivesProgram(buffer)) continue;
      if (unit.has_value() != buffer.has_unit()) continue;
      if (!unit.has_value() || *unit == buffer.unit()) return &buffer;
    }
  }
  return nullptr;
}

}  // namespace troupe
