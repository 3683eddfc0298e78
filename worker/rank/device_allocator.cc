#include "worker/rank/device_allocator.h"

#include <cstring>

#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<void*> DeviceAllocator::Allocate(size_t bytes) {
  ASSIGN_OR_RETURN(void* data, device_.Allocate(bytes));
  device_.Zero(data, bytes);
  const absl::Status zeroed = device_.Synchronize();
  if (zeroed.ok()) return data;
  device_.Free(data);
  return zeroed;
}

absl::StatusOr<void*> PinnedAllocator::Allocate(size_t bytes) {
  ASSIGN_OR_RETURN(void* data, device_.AllocateHost(bytes));
  std::memset(data, 0, bytes);
  return data;
}

}  // namespace troupe
