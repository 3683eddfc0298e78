// N ranks as N threads, each with the phases of one shared segment.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_SHARED_MEMORY_ON_SEGMENT_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_SHARED_MEMORY_ON_SEGMENT_H_

#include <functional>

#include "worker/collective/shared_memory/phases.h"

namespace troupe {

// Runs `body` once on each rank, and joins the threads.
void OnSegment(int ranks, const std::function<void(Phases&)>& body);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_SHARED_MEMORY_ON_SEGMENT_H_
