// How much memory this process holds, as the kernel counts it, and how to hold
// no more than is used.
#ifndef TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_
#define TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_

#include <cstdint>

namespace troupe {

// The resident set in bytes; 0 where /proc cannot be read.
int64_t ResidentMemoryBytes();

// One heap for all threads, from here on: what one has freed serves the others,
// and ReleaseFreeMemory gives back all of it. Large blocks are few in a worker
// (they lie in slots), so that threads seldom meet there. Call it before other
// threads are started.
void KeepOneHeap();

// Gives the kernel back what the heap keeps for later, as after a job. Of
// further heaps, where threads have their own, glibc keeps the ends.
void ReleaseFreeMemory();

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_
