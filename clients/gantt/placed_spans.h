// The spans of all ranks on one axis, and which of them ran together. A SEND,
// a RECV and a collective hold their lanes from when a rank reaches them, but
// run only once the other side, or every member, has come: the time before is
// waiting, and the last to come is the one that the others waited for.
#ifndef TROUPE_CLIENTS_GANTT_PLACED_SPANS_H_
#define TROUPE_CLIENTS_GANTT_PLACED_SPANS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/timeline.pb.h"

namespace troupe {

struct PlacedSpan {
  int rank = 0;
  const Span* span = nullptr;
  bool computes = false;  // on a lane of that kind
  int64_t start_ns = 0;
  int64_t met_ns = 0;  // in [start_ns, end_ns]; start_ns where it met nobody
  int64_t end_ns = 0;
  int meeting = -1;  // spans with the same number ran together
};

// In the order of the timeline, which must outlive them. Measured ranks are
// placed by their wall clocks, the earliest at 0.
//
// A timeline does not name groups: a SEND meets the RECV of the same unit,
// micro-batch and lane on its peer, collectives meet those of the same kind and
// units. Ranks that are not in the timeline are not waited for.
std::vector<PlacedSpan> PlaceSpans(const Timeline& timeline);

// "FORWARD unit 3, micro-batch 1", "SEND unit 3, micro-batch 1 to rank 2".
std::string SpanWords(const Span& span);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_PLACED_SPANS_H_
