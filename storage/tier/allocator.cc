#include "storage/tier/allocator.h"

#include <sys/mman.h>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/local_cause.h"

namespace troupe {

absl::StatusOr<void*> HostAllocator::Allocate(size_t bytes) {
  CHECK_GT(bytes, 0u);
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return OfThisMachine(absl::ResourceExhaustedError(
        absl::StrCat("the host has no ", bytes,
                     " bytes of address space or memory left; lower the "
                     "tier's budget below what the machine has")));
  }
  // Fewer page faults and TLB misses, where the system is willing.
  madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}

void HostAllocator::Free(void* data, size_t bytes) {
  CHECK_EQ(munmap(data, bytes), 0);
}

}  // namespace troupe
