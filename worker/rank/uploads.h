// Small copies from the host to the rank's device whose call returns before the
// device has taken them: each passes through a block of page-locked memory that
// stays as it is until it has. The tokens of a micro-batch go so, which the
// host reads long before the device gets to them.
//
//   ASSIGN_OR_RETURN(uploads, Uploads::Create(device, bytes));
//   RETURN_IF_ERROR(uploads->Copy(to, tokens.data(), bytes));
//
// There are a few blocks, made at the start, as asking a GPU's driver for
// memory may wait for all that the GPU does. A caller that is further ahead
// than that waits for the oldest copy.
#ifndef TROUPE_WORKER_RANK_UPLOADS_H_
#define TROUPE_WORKER_RANK_UPLOADS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/device.h"
#include "ops/fence.h"
#include "worker/rank/page_locked.h"

namespace troupe {

// Not thread-safe.
class Uploads {
 public:
  // How many copies may be under way.
  static constexpr int kBlocks = 4;

  // For copies of up to `bytes` bytes. Borrows the device. A device that is not
  // asynchronous needs no blocks. ResourceExhausted where there is no memory.
  static absl::StatusOr<std::unique_ptr<Uploads>> Create(Device& device,
                                                         size_t bytes);
  // Waits for the copies.
  ~Uploads();
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  // Enqueues it in the queue of the calling thread; `from` may change when this
  // returns. The device's error, where it waits. REQUIRES no more bytes than
  // there is room for.
  absl::Status Copy(void* to, const void* from, size_t bytes);

 private:
  struct Block {
    PageLocked memory;
    std::unique_ptr<Fence> copied;  // null: it was not used yet
  };

  Uploads(Device& device, size_t bytes) : device_(device), bytes_(bytes) {}

  Device& device_;
  const size_t bytes_;
  std::vector<Block> blocks_;  // empty: the device is not asynchronous
  size_t next_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_UPLOADS_H_
