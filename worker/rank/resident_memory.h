// How much memory this process holds, as the kernel counts it, and how to hold
// no more than is used.
#ifndef TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_
#define TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_

#include <cstdint>

namespace troupe {

// The resident set in bytes; 0 where /proc cannot be read.
int64_t ResidentMemoryBytes();

// Blocks of up to 32 MiB come from heaps, which keep what is freed, from here
// on, and not from mappings of their own, which a kernel would have to fault in
// at each call. glibc comes to that by itself, but then cannot be told more.
// Call it before other threads are started.
void KeepFreeMemory();

// Gives the kernel back what heaps keep for later, as after a job. Each thread
// has a heap of its own, whose end only the thread itself can give back, and is
// to before it ends: the heap may lie idle then. REQUIRES: KeepFreeMemory().
void ReleaseFreeMemory();
void ReleaseFreeMemoryOfThread();

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_
