#include "proto/plan/memory.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/plan/buffer_kind.h"

namespace troupe {
namespace {

int64_t SlotBytes(const Role& role, Tier tier) {
  int64_t bytes = 0;
  for (const Slot& slot : role.slots()) {
    if (slot.tier() == tier) bytes += slot.bytes() * CopiesOf(slot);
  }
  return bytes;
}

}  // namespace

std::vector<MemoryItem> MemoryItems(const Role& role) {
  std::vector<MemoryItem> items;
  for (const Slot& slot : role.slots()) {
    MemoryItem* found = nullptr;
    for (MemoryItem& item : items) {
      if (item.tier() == slot.tier() && item.item() == slot.item()) {
        found = &item;
      }
    }
    if (found == nullptr) {
      found = &items.emplace_back();
      found->set_tier(slot.tier());
      found->set_item(slot.item());
    }
    found->set_bytes(found->bytes() + slot.bytes() * CopiesOf(slot));
  }
  if (const int64_t on_disk = SlotBytes(role, NVME); on_disk > 0) {
    MemoryItem& checksums = items.emplace_back();
    checksums.set_tier(HOST);
    checksums.set_item(kChecksumsItem);
    checksums.set_bytes(ChecksumBytes(on_disk));
  }
  return items;
}

int64_t BytesIn(const Role& role, Tier tier) {
  const int64_t checksums =
      tier == HOST ? ChecksumBytes(SlotBytes(role, NVME)) : 0;
  return SlotBytes(role, tier) + checksums;
}

int64_t PredictedBytes(const Plan& plan, int rank, absl::string_view item) {
  int64_t bytes = 0;
  for (const RankPrediction& prediction : plan.prediction().ranks()) {
    if (prediction.rank() != rank) continue;
    for (const MemoryItem& of_rank : prediction.memory()) {
      if (of_rank.item() == item) bytes += of_rank.bytes();
    }
  }
  return bytes;
}

int64_t ChecksumBytes(int64_t nvme_bytes) {
  constexpr int64_t kOfABlock = 4;
  const int64_t blocks = TierAligned(nvme_bytes, NVME) / AlignmentOf(NVME);
  return TierAligned(blocks * kOfABlock, HOST);
}

std::string ReadableBytes(int64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, value, unit);
}

std::string TierText(Tier tier) {
  return absl::AsciiStrToLower(Tier_Name(tier));
}

}  // namespace troupe
