#include "storage/spill/spill_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "proto/base/status.h"
#include "storage/tier/allocator.h"

namespace troupe {

SpillWindow::~SpillWindow() {
  if (data_ != nullptr) HostAllocator().Free(data_, kWindowBytes);
}

uint64_t SpillWindow::BytesAt(uint64_t begin) const {
  return std::min(kWindowBytes, queue_.file().bytes() - begin);
}

absl::Status SpillWindow::MoveTo(uint64_t offset, bool whole) {
  const uint64_t begin = offset / kWindowBytes * kWindowBytes;
  if (range_.bytes > 0 && range_.offset == begin) return absl::OkStatus();
  RETURN_IF_ERROR(Flush());
  if (data_ == nullptr) {
    ASSIGN_OR_RETURN(void* const data, HostAllocator().Allocate(kWindowBytes));
    data_ = static_cast<char*>(data);
  }
  const SpillRange range = {begin, BytesAt(begin)};
  if (!whole) RETURN_IF_ERROR(queue_.Now(IoKind::kRead, range, data_));
  range_ = range;
  return absl::OkStatus();
}

absl::Status SpillWindow::Read(uint64_t offset, uint64_t bytes, char* to) {
  while (bytes > 0) {
    RETURN_IF_ERROR(MoveTo(offset, /*whole=*/false));
    const uint64_t count = std::min(bytes, range_.end() - offset);
    std::memcpy(to, data_ + (offset - range_.offset), count);
    offset += count;
    bytes -= count;
    to += count;
  }
  return absl::OkStatus();
}

absl::Status SpillWindow::Write(uint64_t offset, uint64_t bytes,
                                const char* from) {
  while (bytes > 0) {
    const bool whole = offset % kWindowBytes == 0 && bytes >= BytesAt(offset);
    RETURN_IF_ERROR(MoveTo(offset, whole));
    const uint64_t count = std::min(bytes, range_.end() - offset);
    std::memcpy(data_ + (offset - range_.offset), from, count);
    changed_ = true;
    offset += count;
    bytes -= count;
    from += count;
  }
  return absl::OkStatus();
}

absl::Status SpillWindow::Flush() {
  const SpillRange shown = std::exchange(range_, {});
  if (!std::exchange(changed_, false)) return absl::OkStatus();
  return queue_.Now(IoKind::kWrite, shown, data_);
}

}  // namespace troupe
