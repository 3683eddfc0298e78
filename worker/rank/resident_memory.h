// How much memory this process holds, as the kernel counts it, and how to hold
// no more than is used.
#ifndef TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_
#define TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_

#include <cstdint>

namespace troupe {

// The resident set in bytes; 0 where /proc cannot be read.
int64_t ResidentMemoryBytes();

// While one lives, heaps keep what is freed, up to 64 MiB at the end of each,
// for what is allocated next: kernels would else have to fault in the same
// memory at each call. From its end on they keep nothing. Of the process: one
// at a time.
class KeptFreeMemory {
 public:
  KeptFreeMemory();
  ~KeptFreeMemory();
  KeptFreeMemory(const KeptFreeMemory&) = delete;
  KeptFreeMemory& operator=(const KeptFreeMemory&) = delete;
};

// Gives the kernel back what heaps have free, as after a job. Each thread has a
// heap of its own, whose end only the thread itself can give back, and is to
// before it ends: the heap may lie idle then. REQUIRES: none is kept.
void ReleaseFreeMemory();
void ReleaseFreeMemoryOfThread();

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_
