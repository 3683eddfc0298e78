// How much memory this process holds, as the kernel counts it, and how to hold
// no more than is used.
#ifndef TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_
#define TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_

#include <cstdint>

namespace troupe {

// The resident set in bytes; 0 where /proc cannot be read.
int64_t ResidentMemoryBytes();

// Gives the kernel back what the heaps of all threads keep for later, as after
// a job, but for the ends of heaps that other threads than the first one have:
// glibc keeps those.
void ReleaseFreeMemory();

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_
