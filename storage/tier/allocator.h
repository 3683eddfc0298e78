// Where the bytes of a tier come from. The seam through which a device's memory
// reaches an Arena: the worker passes in an allocator for GPUs, storage brings
// the one for the host.
#ifndef TROUPE_STORAGE_TIER_ALLOCATOR_H_
#define TROUPE_STORAGE_TIER_ALLOCATOR_H_

#include <cstddef>

#include "absl/status/statusor.h"

namespace troupe {

// Thread-safe.
class TierAllocator {
 public:
  virtual ~TierAllocator() = default;
  // At least `bytes` (> 0) bytes, or ResourceExhausted.
  virtual absl::StatusOr<void*> Allocate(size_t bytes) = 0;
  // What Allocate gave, with the same size.
  virtual void Free(void* data, size_t bytes) = 0;
};

// Host memory, aligned to 4096 bytes (fit for O_DIRECT) and zero at first.
class HostAllocator final : public TierAllocator {
 public:
  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* data, size_t bytes) override;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_TIER_ALLOCATOR_H_
