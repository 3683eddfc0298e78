// Host memory that copies from and to a device reach without passing through
// other memory, so that on a GPU they are truly enqueued: the host goes on.
// For what is copied in every step and is small.
#ifndef TROUPE_WORKER_RANK_PAGE_LOCKED_H_
#define TROUPE_WORKER_RANK_PAGE_LOCKED_H_

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "ops/device.h"

namespace troupe {

class PageLocked {
 public:
  // Uninitialised. Borrows the device. ResourceExhausted where there is none
  // left. On a GPU it may wait for all that the device does.
  static absl::StatusOr<PageLocked> Create(Device& device, size_t bytes) {
    absl::StatusOr<void*> data = device.AllocateHost(bytes);
    if (!data.ok()) return data.status();
    return PageLocked(device, *data);
  }
  PageLocked(PageLocked&& other) noexcept
      : device_(other.device_), data_(std::exchange(other.data_, nullptr)) {}
  PageLocked& operator=(PageLocked&&) = delete;
  // REQUIRES that no copy from or to it is under way.
  ~PageLocked() {
    if (data_ != nullptr) device_.FreeHost(data_);
  }

  void* data() const { return data_; }

 private:
  PageLocked(Device& device, void* data) : device_(device), data_(data) {}

  Device& device_;
  void* data_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_PAGE_LOCKED_H_
