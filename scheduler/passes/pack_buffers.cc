#include "scheduler/passes/pack_buffers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "absl/types/optional.h"

namespace troupe {
namespace {

constexpr int kForever = std::numeric_limits<int>::max();

// Bytes of a slot from an offset on, as many as is said elsewhere, that are
// free for a time.
struct Gap {
  Life free;
  Place place;
};

// Gaps of one height. Values of one size are placed in the order in which their
// lives begin, so that a gap is looked at once its own beginning has come: each
// takes logarithmic time.
class Gaps {
 public:
  void Add(const Gap& gap) {
    if (gap.free.begin > gap.free.end) return;
    if (gap.free.end < now_) {
      past_.push_back(gap);
    } else {
      later_.push(gap);
    }
  }

  // Takes out a gap that is free for this life: the one that ends soonest, and
  // of those that which was free last. REQUIRES that no life began later since
  // Rewind.
  absl::optional<Gap> Take(const Life& life) {
    now_ = life.begin;
    while (!later_.empty() && later_.top().free.begin <= life.begin) {
      open_.insert(later_.top());
      later_.pop();
    }
    const auto found =
        open_.lower_bound({.free = {.begin = kForever, .end = life.end}});
    if (found == open_.end()) return absl::nullopt;
    const Gap gap = *found;
    open_.erase(found);
    return gap;
  }

  // Lives may begin anywhere again.
  void Rewind() {
    for (const Gap& gap : open_) later_.push(gap);
    for (const Gap& gap : past_) later_.push(gap);
    open_.clear();
    past_.clear();
    now_ = 0;
  }

 private:
  struct BeginsLater {
    bool operator()(const Gap& a, const Gap& b) const {
      return std::make_pair(a.free.begin, a.place) >
             std::make_pair(b.free.begin, b.place);
    }
  };
  struct EndsSooner {
    bool operator()(const Gap& a, const Gap& b) const {
      return std::make_tuple(a.free.end, -a.free.begin, a.place) <
             std::make_tuple(b.free.end, -b.free.begin, b.place);
    }
  };

  std::priority_queue<Gap, std::vector<Gap>, BeginsLater> later_;
  std::set<Gap, EndsSooner> open_;
  std::vector<Gap> past_;  // over before the lives of now
  int now_ = 0;
};

class BufferPacking {
 public:
  std::vector<int64_t> TakeSlots() { return std::move(slots_); }

  // REQUIRES values in descending order of sizes, those of one size in the
  // order of their lives.
  Place Put(int64_t bytes, const Life& life) {
    if (bytes != last_bytes_) {
      for (auto& [height, gaps] : gaps_) gaps.Rewind();
      last_bytes_ = bytes;
    }
    for (auto at = gaps_.lower_bound(bytes); at != gaps_.end(); ++at) {
      const absl::optional<Gap> gap = at->second.Take(life);
      if (!gap.has_value()) continue;
      const auto [slot, offset] = gap->place;
      const int64_t left = at->first - bytes;
      if (left > 0) gaps_[left].Add({gap->free, {slot, offset + bytes}});
      return Occupy(bytes, *gap, life);
    }
    return Occupy(bytes, {{0, kForever}, AddSlot(bytes)}, life);
  }

  // What goes round lives beside all others that do, but lends its bytes when
  // it is not in use.
  Place PutRound(int64_t bytes, const Life& life) {
    const Place place = AddSlot(bytes);
    gaps_[bytes].Add({{life.end + 1, life.begin - 1}, place});
    return place;
  }

 private:
  Place AddSlot(int64_t bytes) {
    slots_.push_back(bytes);
    return {static_cast<int>(slots_.size()) - 1, 0};
  }

  Place Occupy(int64_t bytes, const Gap& gap, const Life& life) {
    gaps_[bytes].Add({{gap.free.begin, life.begin - 1}, gap.place});
    gaps_[bytes].Add({{life.end + 1, gap.free.end}, gap.place});
    return gap.place;
  }

  std::vector<int64_t> slots_;  // their bytes
  int64_t last_bytes_ = 0;
  std::map<int64_t, Gaps> gaps_;  // by height
};

}  // namespace

std::vector<int64_t> PackBuffers(std::vector<Tenant>& tenants) {
  std::vector<Tenant*> order;
  for (Tenant& tenant : tenants) order.push_back(&tenant);
  std::stable_sort(
      order.begin(), order.end(), [](const Tenant* a, const Tenant* b) {
        return std::make_tuple(!a->life.GoesRound(), -a->bytes, a->life.begin) <
               std::make_tuple(!b->life.GoesRound(), -b->bytes, b->life.begin);
      });
  BufferPacking packing;
  for (Tenant* const tenant : order) {
    tenant->place = tenant->life.GoesRound()
                        ? packing.PutRound(tenant->bytes, tenant->life)
                        : packing.Put(tenant->bytes, tenant->life);
  }
  return packing.TakeSlots();
}

int64_t MostAtOnce(const std::vector<Tenant>& tenants) {
  std::map<int, int64_t> changes;
  for (const Tenant& tenant : tenants) {
    if (tenant.life.GoesRound()) changes[0] += tenant.bytes;
    changes[tenant.life.begin] += tenant.bytes;
    changes[tenant.life.end + 1] -= tenant.bytes;
  }
  int64_t now = 0;
  int64_t most = 0;
  for (const auto& [moment, change] : changes) {
    now += change;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace troupe
