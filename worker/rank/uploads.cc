#include "worker/rank/uploads.h"

#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<Uploads>> Uploads::Create(Device& device,
                                                         size_t bytes) {
  auto uploads = absl::WrapUnique(new Uploads(device, bytes));
  if (!device.asynchronous()) return uploads;
  for (int i = 0; i < kBlocks; ++i) {
    ASSIGN_OR_RETURN(PageLocked memory, PageLocked::Create(device, bytes));
    uploads->blocks_.push_back({std::move(memory), nullptr});
  }
  return uploads;
}

Uploads::~Uploads() {
  for (const Block& block : blocks_) {
    if (block.copied != nullptr) block.copied->Await().IgnoreError();
  }
}

absl::Status Uploads::Copy(void* to, const void* from, size_t bytes) {
  CHECK_LE(bytes, bytes_);
  if (blocks_.empty()) {
    device_.CopyFromHost(to, from, bytes);
    return absl::OkStatus();
  }
  Block& block = blocks_[next_];
  next_ = (next_ + 1) % blocks_.size();
  if (block.copied != nullptr) RETURN_IF_ERROR(block.copied->Await());
  std::memcpy(block.memory.data(), from, bytes);
  device_.CopyFromHost(to, block.memory.data(), bytes);
  block.copied = device_.Record(FenceUse::kOrder);
  return absl::OkStatus();
}

}  // namespace troupe
