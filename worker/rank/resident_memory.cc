#include "worker/rank/resident_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace troupe {
namespace {

constexpr int kFromHeapBytesMax = 32 << 20;  // the most that glibc takes

}  // namespace

int64_t ResidentMemoryBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  if (!(file >> total_pages >> resident_pages)) return 0;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

KeptFreeMemory::KeptFreeMemory() {
  // Blocks of up to that come from heaps, not from mappings of their own.
  mallopt(M_MMAP_THRESHOLD, kFromHeapBytesMax);
  mallopt(M_TRIM_THRESHOLD, 2 * kFromHeapBytesMax);
}

KeptFreeMemory::~KeptFreeMemory() { mallopt(M_TRIM_THRESHOLD, 0); }

void ReleaseFreeMemory() {
  ReleaseFreeMemoryOfThread();
  malloc_trim(0);
}

// glibc looks at the end of a heap when a block of over 64 KiB is freed.
void ReleaseFreeMemoryOfThread() {
  constexpr size_t kLookedAtBytes = 96 << 10;
  void* volatile block = malloc(kLookedAtBytes);
  free(block);
}

}  // namespace troupe
