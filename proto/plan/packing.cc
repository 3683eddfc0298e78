#include "proto/plan/packing.h"

#include <algorithm>
#include <map>

namespace troupe {

int64_t Packing::Add(const Life& life) {
  std::map<int64_t, int64_t> taken;  // begin to end
  for (const auto& [offset, other] : placed_) {
    const bool together =
        std::any_of(life.moments.begin(), life.moments.end(),
                    [&](int m) { return other.moments.count(m) > 0; });
    if (!together) continue;
    int64_t& end = taken[offset];
    end = std::max(end, offset + other.bytes);
  }
  int64_t offset = 0;
  for (const auto& [begin, end] : taken) {
    if (offset + life.bytes <= begin) break;
    offset = std::max(offset, end);
  }
  placed_.emplace_back(offset, life);
  bytes_ = std::max(bytes_, offset + life.bytes);
  return offset;
}

}  // namespace troupe
