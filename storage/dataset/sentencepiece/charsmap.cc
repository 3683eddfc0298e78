#include "storage/dataset/sentencepiece/charsmap.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "proto/base/status.h"
#include "storage/engine/little_endian.h"

namespace troupe {
namespace {

// One unit of a Darts-clone double array: of a node, or of its leaf.
uint32_t Label(uint32_t unit) { return unit & (1u << 31 | 0xFF); }
uint32_t Offset(uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t Value(uint32_t unit) { return unit & ~(1u << 31); }

absl::Status Damaged() {
  return absl::InvalidArgumentError("the precompiled_charsmap is damaged");
}

}  // namespace

// The table: the bytes of the double array, the array, the replacements.
absl::StatusOr<Charsmap> Charsmap::Parse(absl::string_view table) {
  if (table.size() < 4) return Damaged();
  const uint32_t bytes = LoadLittleEndian<uint32_t>(table.data());
  table.remove_prefix(4);
  if (bytes > table.size() || bytes % 4 != 0 || bytes == 0) return Damaged();
  Charsmap map;
  for (uint32_t at = 0; at < bytes; at += 4) {
    map.units_.push_back(LoadLittleEndian<uint32_t>(table.data() + at));
  }
  map.replacements_ = table.substr(bytes);
  if (!absl::EndsWith(map.replacements_, absl::string_view("\0", 1))) {
    return Damaged();
  }
  RETURN_IF_ERROR(map.Measure());
  return map;
}

// Level by level, since ends of entries are shared. An array that has no end is
// damaged.
absl::Status Charsmap::Measure() {
  constexpr size_t kEntryBytesMax = 128;  // published tables: about 20
  std::vector<uint32_t> level = {Offset(units_[0])};
  for (size_t depth = 0; !level.empty(); ++depth) {
    if (depth > kEntryBytesMax) return Damaged();
    longest_ = depth;
    std::vector<uint32_t> next;
    for (const uint32_t node : level) {
      for (uint32_t byte = 1; byte < 256; ++byte) {
        const uint32_t child = node ^ byte;
        if (child >= units_.size() || Label(units_[child]) != byte) continue;
        next.push_back(child ^ Offset(units_[child]));
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    level = std::move(next);
  }
  return absl::OkStatus();
}

Charsmap::Entry Charsmap::LookUp(absl::string_view text, bool longest) const {
  Entry entry;
  if (units_.empty()) return entry;
  uint32_t node = Offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size() || Label(units_[node]) != byte) break;
    const bool has_leaf = HasLeaf(units_[node]);
    node ^= Offset(units_[node]);
    if (!has_leaf || node >= units_.size()) continue;
    const uint32_t at = Value(units_[node]);
    if (at >= replacements_.size()) continue;
    entry = {absl::string_view(replacements_.data() + at), i + 1};
    if (!longest) break;
  }
  return entry;
}

}  // namespace troupe
