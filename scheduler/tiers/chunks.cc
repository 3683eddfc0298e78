#include "scheduler/tiers/chunks.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>

namespace troupe {
namespace {

constexpr int kNever = -1;

// The use of the same chunk that follows each, or kNever.
std::vector<int> NextUses(const std::vector<ChunkUse>& uses) {
  std::vector<int> next(uses.size(), kNever);
  std::map<int, int> later;  // by chunk
  for (int i = static_cast<int>(uses.size()); i-- > 0;) {
    const auto [at, last] = later.emplace(uses[i].chunk, i);
    if (!last) next[i] = std::exchange(at->second, i);
  }
  return next;
}

// Goes through the uses once, and lets chunks leave when there is no room.
class Residents {
 public:
  Residents(const std::vector<ChunkUse>& uses, int64_t capacity)
      : uses_(uses), next_(NextUses(uses)), capacity_(capacity) {
    for (const int next : next_) stays_.push_back(next != kNever);
  }

  std::vector<bool> Run() {
    for (int i = 0; i < static_cast<int>(uses_.size()); ++i) {
      while (!running_.empty() && running_.top().first < uses_[i].begin) {
        End(running_.top().second);
        running_.pop();
      }
      Begin(i);
    }
    return std::move(stays_);
  }

 private:
  // What is there of a chunk: the last of its uses that began, and how many of
  // them have not ended.
  struct Chunk {
    int last = 0;
    int running = 0;
  };

  void Begin(int use) {
    const auto [at, comes] = there_.emplace(uses_[use].chunk, Chunk{});
    Chunk& chunk = at->second;
    if (comes) {
      bytes_ += uses_[use].bytes;
    } else if (chunk.running == 0) {
      idle_.erase(uses_[use].chunk);
    }
    chunk.last = use;
    ++chunk.running;
    running_.emplace(uses_[use].end, use);
    MakeRoom(uses_[use].begin);
  }

  void End(int use) {
    const auto at = there_.find(uses_[use].chunk);
    if (--at->second.running > 0) return;
    const int next = next_[at->second.last];
    if (next == kNever) {
      bytes_ -= uses_[use].bytes;
      there_.erase(at);
      return;
    }
    idle_.insert(at->first);
    MakeRoom(uses_[use].end + 1);
  }

  void MakeRoom(int now) {
    while (bytes_ > capacity_ && !idle_.empty()) {
      const auto farthest = std::max_element(
          idle_.begin(), idle_.end(),
          [&](int a, int b) { return Distance(a, now) < Distance(b, now); });
      const int last = there_.at(*farthest).last;
      stays_[last] = false;
      bytes_ -= uses_[last].bytes;
      there_.erase(*farthest);
      idle_.erase(farthest);
    }
  }

  // To the chunk's next use, for each move that waiting for it saves.
  double Distance(int chunk, int now) const {
    const int last = there_.at(chunk).last;
    return static_cast<double>(uses_[next_[last]].begin - now) /
           uses_[last].moves;
  }

  const std::vector<ChunkUse>& uses_;
  const std::vector<int> next_;
  const int64_t capacity_;
  std::vector<bool> stays_;
  int64_t bytes_ = 0;  // of all that is there
  std::map<int, Chunk> there_;
  std::set<int> idle_;  // of them, those that are not in use
  // Uses by their ends, the soonest on top.
  std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>,
                      std::greater<>>
      running_;
};

}  // namespace

std::vector<bool> StayUntilNextUse(const std::vector<ChunkUse>& uses,
                                   int64_t capacity) {
  return Residents(uses, capacity).Run();
}

}  // namespace troupe
