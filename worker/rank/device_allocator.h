// Where the tiers of a worker on a GPU come from: the device's own memory, and
// host memory that its copies reach fastest. Zero at first, like that of
// storage's HostAllocator, so that a job meets the same bytes on any device.
#ifndef TROUPE_WORKER_RANK_DEVICE_ALLOCATOR_H_
#define TROUPE_WORKER_RANK_DEVICE_ALLOCATOR_H_

#include "ops/device.h"
#include "storage/tier/allocator.h"

namespace troupe {

// Both borrow the device.
class DeviceAllocator final : public TierAllocator {
 public:
  explicit DeviceAllocator(Device& device) : device_(device) {}
  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* data, size_t bytes) override { device_.Free(data); }

 private:
  Device& device_;
};

class PinnedAllocator final : public TierAllocator {
 public:
  explicit PinnedAllocator(Device& device) : device_(device) {}
  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* data, size_t bytes) override { device_.FreeHost(data); }

 private:
  Device& device_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_DEVICE_ALLOCATOR_H_
