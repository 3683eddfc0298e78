#include "proto/plan/packing.h"

#include <algorithm>
#include <map>

namespace troupe {

int64_t Packing::Add(const SizedLife& life) {
  std::map<int64_t, int64_t> taken;  // begin to end
  for (const auto& placed : placed_) {
    const int64_t begin = placed.first;
    const SizedLife& other = placed.second;
    const bool together =
        std::any_of(life.times.begin(), life.times.end(),
                    [&](int m) { return other.times.count(m) > 0; });
    if (!together) continue;
    int64_t& end = taken[begin];
    end = std::max(end, begin + other.bytes);
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
