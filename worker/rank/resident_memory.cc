#include "worker/rank/resident_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace troupe {

int64_t ResidentMemoryBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  if (!(file >> total_pages >> resident_pages)) return 0;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

void KeepOneHeap() { mallopt(M_ARENA_MAX, 1); }

void ReleaseFreeMemory() { malloc_trim(0); }

}  // namespace troupe
