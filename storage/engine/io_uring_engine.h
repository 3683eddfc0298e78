// The engine over Linux's io_uring: requests go to the kernel through a ring,
// and aligned ones past the page cache, straight between the caller's memory
// and the device. The kernel knows open files, and memory that was registered,
// by number (ring_tables.h).
#ifndef TROUPE_STORAGE_ENGINE_IO_URING_ENGINE_H_
#define TROUPE_STORAGE_ENGINE_IO_URING_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "storage/engine/engine.h"

namespace troupe {

// Unavailable, with the reason, where the kernel has no io_uring, is older than
// 5.11, or forbids it (as containers do). Requires 1 <= depth <= 4096.
absl::StatusOr<std::unique_ptr<IoEngine>> MakeIoUringEngine(int depth);

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_IO_URING_ENGINE_H_
