#include "clients/gantt/critical_path.h"

#include <algorithm>
#include <map>
#include <set>

#include "clients/gantt/bar_kind.h"

namespace troupe {
namespace {

// Whether `later` can have waited for `earlier`, of the same rank.
bool MayWaitFor(const Span& later, const Span& earlier) {
  if (later.lane() == earlier.lane()) return true;
  // What fills memory waits for its last reader, of whatever micro-batch.
  if (later.kind() == Instruction::RECV ||
      later.kind() == Instruction::LOAD_BATCH) {
    return true;
  }
  if (!later.has_micro_batch() || !earlier.has_micro_batch()) return true;
  return later.micro_batch() == earlier.micro_batch() &&
         later.ahead() == earlier.ahead();
}

// Goes back through the spans, one at a time.
class Walk {
 public:
  explicit Walk(const std::vector<PlacedSpan>& spans) : spans_(spans) {
    for (int i = 0; i < static_cast<int>(spans.size()); ++i) {
      by_end_[spans[i].rank].push_back(i);
      const int meeting = spans[i].meeting;
      if (meeting < 0) continue;
      const auto [last, is_first] = last_to_come_.emplace(meeting, i);
      if (spans[i].start_ns > spans[last->second].start_ns) last->second = i;
    }
    for (auto& [rank, order] : by_end_) {
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return spans[a].end_ns < spans[b].end_ns;
      });
    }
  }

  int LastToCome(int span) const {
    const int meeting = spans_[span].meeting;
    return meeting < 0 ? span : last_to_come_.at(meeting);
  }

  // What `span` waited for on its own rank; -1: nothing, the step began.
  int WaitedFor(int span) {
    const PlacedSpan& later = spans_[span];
    const std::vector<int>& order = by_end_.at(later.rank);
    int found = -1;
    auto it = std::upper_bound(
        order.begin(), order.end(), later.start_ns,
        [&](int64_t at, int i) { return at < spans_[i].end_ns; });
    while (it != order.begin()) {
      const int i = *--it;
      const PlacedSpan& earlier = spans_[i];
      if (found >= 0 && earlier.end_ns < spans_[found].end_ns) break;
      if (seen_.count(i) > 0 || earlier.start_ns > later.start_ns ||
          !MayWaitFor(*later.span, *earlier.span)) {
        continue;
      }
      // Of several that ended at once, what a rank computes: the rest of the
      // path is then about work, and not about the order of a lane.
      if (found < 0 || earlier.computes) found = i;
      if (earlier.computes) break;
    }
    return found;
  }

  void MarkSeen(int span) { seen_.insert(span); }

 private:
  const std::vector<PlacedSpan>& spans_;
  std::map<int, std::vector<int>> by_end_;  // by rank
  std::map<int, int> last_to_come_;         // by meeting
  std::set<int> seen_;
};

void AddUp(const std::vector<PlacedSpan>& spans, CriticalPath& path) {
  const int first = spans[path.pieces[0].last_to_come].rank;
  path.start_ns = path.pieces[0].start_ns;
  for (const PlacedSpan& span : spans) {
    if (span.rank == first) {
      path.start_ns = std::min(path.start_ns, span.start_ns);
    }
  }
  int64_t now = path.start_ns;
  for (const PathPiece& piece : path.pieces) {
    const int64_t took = piece.end_ns - piece.start_ns;
    path.waiting_ns += piece.start_ns - now;
    now = piece.end_ns;
    switch (KindOf(spans[piece.span].span->kind())) {
      case BarKind::kForward:
      case BarKind::kRecompute:
      case BarKind::kBackwardInput:
      case BarKind::kBackwardWeight:
      case BarKind::kStep:
        path.compute_ns += took;
        break;
      case BarKind::kTransfer:
        path.transfer_ns += took;
        break;
      case BarKind::kExchange:
      case BarKind::kCollective:
        path.collective_ns += took;
        break;
      case BarKind::kMove:
        path.move_ns += took;
        break;
      case BarKind::kData:
      case BarKind::kOther:
        path.other_ns += took;
        break;
    }
  }
}

}  // namespace

CriticalPath FindCriticalPath(const std::vector<PlacedSpan>& spans) {
  CriticalPath path;
  if (spans.empty()) return path;
  const auto last = std::max_element(
      spans.begin(), spans.end(), [](const PlacedSpan& a, const PlacedSpan& b) {
        return a.end_ns < b.end_ns;
      });
  Walk walk(spans);
  int64_t before = last->end_ns;
  for (int at = static_cast<int>(last - spans.begin()); at >= 0;) {
    walk.MarkSeen(at);
    const int waited_on = walk.LastToCome(at);
    walk.MarkSeen(waited_on);
    PathPiece piece = {.span = at, .last_to_come = waited_on};
    // Clocks of several hosts differ: a piece ends where the next one begins.
    piece.end_ns = std::min(spans[at].end_ns, before);
    piece.start_ns = std::min(spans[at].met_ns, piece.end_ns);
    path.pieces.push_back(piece);
    before = piece.start_ns;
    at = walk.WaitedFor(waited_on);
  }
  std::reverse(path.pieces.begin(), path.pieces.end());
  AddUp(spans, path);
  return path;
}

}  // namespace troupe
