// Executes the steps of a way element by element, as the worker would, with
// none of the reasons of CheckWays: what it is compared with.
#ifndef TROUPE_TESTS_PROTO_PLAN_WAY_EXECUTION_H_
#define TROUPE_TESTS_PROTO_PLAN_WAY_EXECUTION_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/layout.h"
#include "proto/plan/ways.h"

namespace troupe {

using HeldElements = std::vector<bool>;  // of the buffer, which a member holds

// With what each member holds of each element: whose summands, as often as it
// is.
class WayExecution {
 public:
  WayExecution(const Group& group, const Group::Way& way, int members,
               int elements, int root)
      : group_(group),
        way_(way),
        members_(members),
        elements_(elements),
        has_(members, HeldElements(elements, true)),
        sums_(members, std::vector<std::vector<int>>(
                           elements, std::vector<int>(members))) {
    for (int m = 0; m < members; ++m) {
      for (int e = 0; e < elements; ++e) {
        sums_[m][e][m] = 1;
        if (way.collective() == ALL_GATHER) has_[m][e] = OwnerOf(e) == m;
        if (way.collective() == BROADCAST) has_[m][e] = m == root;
      }
    }
  }

  bool Run() {
    for (const Group::Step& step : way_.steps()) {
      int64_t sent = 0;
      const Group::Level& level = group_.levels(step.level());
      for (int m = 0; m < members_; ++m) {
        if (PlaceOn(level, m) != 0) continue;
        const int64_t moved = Step(step, level, MembersOn(level, m));
        if (moved < 0) return false;
        sent += moved;
      }
      sent_.push_back(sent);
    }
    return Arrived();
  }
  // By step, of all members.
  const std::vector<int64_t>& sent() const { return sent_; }

 private:
  // Whose block it is.
  int OwnerOf(int element) const {
    for (int m = 0; m < members_; ++m) {
      const Range block = EvenPiece(elements_, {.index = m, .count = members_});
      if (element >= block.begin && element < block.end) return m;
    }
    return -1;
  }

  // What they send; -1: they cannot.
  int64_t Step(const Group::Step& step, const Group::Level& level,
               const std::vector<int>& ranks) {
    const int64_t others = level.size() - 1;
    const bool sums =
        way_.collective() == ALL_REDUCE || way_.collective() == REDUCE_SCATTER;
    if (step.collective() == BROADCAST) {
      if (sums) return TellOthers(ranks);
      if (way_.collective() != BROADCAST) return -1;
      const int from = HolderAmong(ranks);
      if (from == -2) return -1;
      if (from < 0) return 0;
      for (const int m : ranks) has_[m] = has_[from];
      return others * elements_;
    }
    if (step.collective() == ALL_GATHER) return Gather(ranks);
    const bool known = step.collective() == ALL_REDUCE ||
                       step.collective() == REDUCE_SCATTER ||
                       step.collective() == REDUCE;
    if (!known || !sums) return -1;
    for (const int m : ranks) {
      if (has_[m] != has_[ranks.front()]) return -1;
    }
    const HeldElements part = has_[ranks.front()];
    AddUp(part, ranks);
    const int64_t size = std::count(part.begin(), part.end(), true);
    if (step.collective() == ALL_REDUCE) return 2 * others * size;
    if (step.collective() == REDUCE) {
      for (const int m : ranks) {
        if (m != ranks.front()) has_[m] = HeldElements(elements_);
      }
      return others * size;
    }
    for (size_t place = 0; place < ranks.size(); ++place) {
      has_[ranks[place]] = PieceOf(part, level, static_cast<int>(place));
    }
    return others * size;
  }

  // What the first of them has, the others lack: of those that all lack it
  // nothing is moved.
  int64_t TellOthers(const std::vector<int>& ranks) {
    const int first = ranks.front();
    const HeldElements nothing(elements_);
    for (const int m : ranks) {
      if (m != first && has_[m] != nothing) return -1;
    }
    int64_t sent = 0;
    for (const int m : ranks) {
      if (m == first) continue;
      has_[m] = has_[first];
      sums_[m] = sums_[first];
      sent += std::count(has_[m].begin(), has_[m].end(), true);
    }
    return sent;
  }

  // -1: nobody; -2: all.
  int HolderAmong(const std::vector<int>& ranks) const {
    int holders = 0;
    int holder = -1;
    for (const int m : ranks) {
      if (elements_ == 0 || !has_[m][0]) continue;
      ++holders;
      holder = m;
    }
    return holders == static_cast<int>(ranks.size()) ? -2 : holder;
  }

  void AddUp(const HeldElements& part, const std::vector<int>& ranks) {
    for (int e = 0; e < elements_; ++e) {
      if (!part[e]) continue;
      std::vector<int> sum(members_);
      for (const int m : ranks) {
        for (int i = 0; i < members_; ++i) sum[i] += sums_[m][e][i];
      }
      for (const int m : ranks) sums_[m][e] = sum;
    }
  }

  // Of an all-reduce a piece of a range; of a reduce-scatter the blocks of
  // those at the place.
  HeldElements PieceOf(const HeldElements& part, const Group::Level& level,
                       int place) const {
    HeldElements piece(elements_);
    const int64_t size = std::count(part.begin(), part.end(), true);
    const Range range =
        EvenPiece(size, {.index = place, .count = level.size()});
    int64_t seen = 0;
    for (int e = 0; e < elements_; ++e) {
      if (!part[e]) continue;
      piece[e] = way_.collective() == ALL_REDUCE
                     ? seen >= range.begin && seen < range.end
                     : PlaceOn(level, OwnerOf(e)) == place;
      ++seen;
    }
    return piece;
  }

  int64_t Gather(const std::vector<int>& ranks) {
    if (way_.collective() != ALL_GATHER && way_.collective() != ALL_REDUCE) {
      return -1;
    }
    HeldElements all(elements_);
    std::vector<int> holder(elements_, -1);
    const HeldElements nothing(elements_);
    const bool waits = has_[ranks.front()] == nothing;
    for (const int m : ranks) {
      if ((has_[m] == nothing) != waits) return -1;
    }
    for (const int m : ranks) {
      for (int e = 0; e < elements_; ++e) {
        if (!has_[m][e]) continue;
        if (all[e]) return -1;  // pieces that are not apart
        all[e] = true;
        holder[e] = m;
      }
    }
    if (way_.collective() == ALL_REDUCE && !IsRange(all)) return -1;
    for (const int m : ranks) {
      has_[m] = all;
      for (int e = 0; e < elements_; ++e) {
        if (all[e]) sums_[m][e] = sums_[holder[e]][e];
      }
    }
    return static_cast<int64_t>(ranks.size() - 1) *
           std::count(all.begin(), all.end(), true);
  }

  static bool IsRange(const HeldElements& part) {
    int edges = 0;
    bool before = false;
    for (const bool in : part) {
      edges += in != before ? 1 : 0;
      before = in;
    }
    return edges <= 2;
  }

  bool Arrived() const {
    const bool sums =
        way_.collective() == ALL_REDUCE || way_.collective() == REDUCE_SCATTER;
    for (int m = 0; m < members_; ++m) {
      for (int e = 0; e < elements_; ++e) {
        const bool wanted =
            way_.collective() != REDUCE_SCATTER || OwnerOf(e) == m;
        if (has_[m][e] != wanted) return false;
        if (!wanted || !sums) continue;
        if (sums_[m][e] != std::vector<int>(members_, 1)) return false;
      }
    }
    return true;
  }

  const Group& group_;
  const Group::Way& way_;
  const int members_;
  const int elements_;
  std::vector<HeldElements> has_;
  std::vector<std::vector<std::vector<int>>> sums_;  // member, element, source
  std::vector<int64_t> sent_;
};

// An all-to-all: blocks by their source and destination. A member keeps them by
// number: that of the one they go to, and, where that differs from the member's
// on levels that are done, where they came from. The step over a level takes
// the block of a number to the place that the number has on it.
class BlockExchange {
 public:
  BlockExchange(const Group& group, const Group::Way& way, int members)
      : group_(group), way_(way), members_(members), blocks_(members) {
    for (int m = 0; m < members; ++m) {
      for (int to = 0; to < members; ++to) blocks_[m].emplace_back(m, to);
    }
  }

  bool Run() {
    for (const Group::Step& step : way_.steps()) {
      if (step.collective() != ALL_TO_ALL) return false;
      const Group::Level& level = group_.levels(step.level());
      const auto before = blocks_;
      int64_t sent = 0;
      for (int m = 0; m < members_; ++m) {
        for (int number = 0; number < members_; ++number) {
          const int place = PlaceOn(level, number);
          const int mine = PlaceOn(level, m);
          const int there = m + (place - mine) * level.stride();
          const int as = number + (mine - place) * level.stride();
          blocks_[there][as] = before[m][number];
          sent += there != m ? 1 : 0;
        }
      }
      sent_.push_back(sent);
    }
    for (int m = 0; m < members_; ++m) {
      for (int from = 0; from < members_; ++from) {
        if (blocks_[m][from] != std::pair(from, m)) return false;
      }
    }
    return true;
  }
  // By step, of all members: blocks.
  const std::vector<int64_t>& sent() const { return sent_; }

 private:
  const Group& group_;
  const Group::Way& way_;
  const int members_;
  std::vector<std::vector<std::pair<int, int>>> blocks_;
  std::vector<int64_t> sent_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_PLAN_WAY_EXECUTION_H_
