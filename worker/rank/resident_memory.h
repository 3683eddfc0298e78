// How much memory this process holds, as the kernel counts it.
#ifndef TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_
#define TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_

#include <cstdint>

namespace troupe {

// The resident set in bytes; 0 where /proc cannot be read.
int64_t ResidentMemoryBytes();

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_RESIDENT_MEMORY_H_
