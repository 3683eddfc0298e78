// Why a step takes as long as it takes: the chain of spans that determines its
// end. From the span that ends last it goes back to what that one waited for,
// and on, to the step's start. A step becomes shorter only where something on
// the path becomes shorter.
//
// A timeline says what ran when, not what waited for what, so the chain follows
// ends that touch starts: an instruction waits for those before it in its lane
// and for others of its rank that concern the same micro-batch, and of them for
// the one that ended last before it started (of equals, for one that computes);
// what several ranks run together waits for the rank that came last.
#ifndef TROUPE_CLIENTS_GANTT_CRITICAL_PATH_H_
#define TROUPE_CLIENTS_GANTT_CRITICAL_PATH_H_

#include <cstdint>
#include <vector>

#include "clients/gantt/placed_spans.h"

namespace troupe {

// One span's part of the path. Pieces do not overlap; between two of them
// nothing ran that the later one is seen to have waited for.
struct PathPiece {
  int span = 0;  // index into the placed spans
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  // The rank that came last to what the span met: the path goes on there before
  // it. The same as `span` where that is its own rank.
  int last_to_come = 0;
};

struct CriticalPath {
  std::vector<PathPiece> pieces;  // by time
  // When the rank of the first piece began with the step: others may have begun
  // earlier, with it or, where steps overlap, with the end of another.
  int64_t start_ns = 0;

  // What the path consists of: sums of its pieces, and of the time between.
  int64_t compute_ns = 0;
  int64_t transfer_ns = 0;
  int64_t collective_ns = 0;
  int64_t move_ns = 0;   // between tiers of memory
  int64_t other_ns = 0;  // data, copies for checkpoints
  int64_t waiting_ns = 0;

  int64_t total_ns() const {
    return compute_ns + transfer_ns + collective_ns + move_ns + other_ns +
           waiting_ns;
  }
};

// Empty where there are no spans.
CriticalPath FindCriticalPath(const std::vector<PlacedSpan>& spans);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_CRITICAL_PATH_H_
