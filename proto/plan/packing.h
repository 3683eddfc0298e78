// Memory that several things use by turns: what is in use at some of a unit's
// times, laid out so that no two share a byte at any of them.
#ifndef TROUPE_PROTO_PLAN_PACKING_H_
#define TROUPE_PROTO_PLAN_PACKING_H_

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace troupe {

// Sizes of memory: every tensor starts on a cache line.
inline constexpr int64_t kCacheLineBytes = 64;
inline int64_t LineAligned(int64_t bytes) {
  return (bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

// Something of a size. Times are numbers of the user's choice.
struct SizedLife {
  int64_t bytes = 0;
  std::set<int> times;
};

class Packing {
 public:
  // Each at the lowest offset that is free, in the order given.
  int64_t Add(const SizedLife& life);
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<std::pair<int64_t, SizedLife>> placed_;
  int64_t bytes_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PACKING_H_
