// The critical path for people. It has a piece for each span, thousands in a
// long step; a stretch is what it does on one rank before it goes to another.
#ifndef TROUPE_CLIENTS_GANTT_PATH_STRETCHES_H_
#define TROUPE_CLIENTS_GANTT_PATH_STRETCHES_H_

#include <string>
#include <vector>

#include "clients/gantt/critical_path.h"
#include "clients/gantt/placed_spans.h"

namespace troupe {

struct PathStretch {
  std::string who;   // "rank 2", "rank 2 to 3"
  std::string what;  // "FORWARD, BACKWARD_INPUT of micro-batches 3-20"
  double seconds = 0;
  double waited_seconds = 0;  // before and within it
};

std::vector<PathStretch> Stretches(const std::vector<PlacedSpan>& spans,
                                   const CriticalPath& path);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_PATH_STRETCHES_H_
