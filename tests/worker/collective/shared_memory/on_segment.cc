#include "tests/worker/collective/shared_memory/on_segment.h"

#include <unistd.h>

#include "proto/base/check.h"
#include "tests/worker/collective/ranks.h"
#include "worker/collective/shared_memory/members.h"
#include "worker/collective/shared_memory/segment.h"
#include "worker/collective/shared_memory/segment_map.h"

namespace troupe {

void OnSegment(int ranks, const std::function<void(Phases&)>& body) {
  auto segment = SharedSegment::Create(SegmentMap::Bytes(ranks));
  CHECK_OK(segment.status());
  SegmentMap map(segment->data(), ranks);
  map.Initialize();
  for (int rank = 0; rank < ranks; ++rank) map.state(rank).process = getpid();
  OnThreads(ranks, [&](int rank) {
    Members members(map, rank);
    Phases phases(map, members, rank);
    body(phases);
  });
}

}  // namespace troupe
