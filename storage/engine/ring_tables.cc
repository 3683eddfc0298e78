#include "storage/engine/ring_tables.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "storage/disk/errno_status.h"

namespace troupe {
namespace {

constexpr int kFilesMax = 64;
// Of 1 GiB each, the most that the kernel takes.
constexpr int kPiecesMax = 4096;
constexpr size_t kPieceBytesMax = size_t{1} << 30;

// Lowest first.
std::vector<int> NumbersBelow(int count) {
  std::vector<int> numbers;
  for (int i = count - 1; i >= 0; --i) numbers.push_back(i);
  return numbers;
}

absl::Status Refusal(int error, size_t bytes) {
  if (error == ENOMEM) {
    return absl::ResourceExhaustedError(
        absl::StrCat("io_uring may not lock ", bytes,
                     " bytes of memory, and goes on without; raise ulimit -l"));
  }
  return ErrnoStatus(
      error, absl::StrCat("io_uring: locking ", bytes, " bytes of memory"));
}

}  // namespace

RingFiles::RingFiles(io_uring& ring) : ring_(ring) {
  if (io_uring_register_files_sparse(&ring, kFilesMax) == 0) {
    free_ = NumbersBelow(kFilesMax);
  }
}

int RingFiles::Add(int fd) {
  if (fd < 0 || free_.empty()) return -1;
  const int number = free_.back();
  if (io_uring_register_files_update(&ring_, static_cast<unsigned>(number), &fd,
                                     1) != 1) {
    return -1;
  }
  free_.pop_back();
  return number;
}

void RingFiles::Remove(int number) {
  if (number < 0) return;
  const int none = -1;
  CHECK_EQ(io_uring_register_files_update(&ring_, static_cast<unsigned>(number),
                                          &none, 1),
           1);
  free_.push_back(number);
}

RingMemory::RingMemory(io_uring& ring) : ring_(ring) {
  if (io_uring_register_buffers_sparse(&ring, kPiecesMax) == 0) {
    free_ = NumbersBelow(kPiecesMax);
  }
}

absl::Status RingMemory::Add(char* data, size_t bytes) {
  if (free_.empty() && pieces_.empty()) {
    return absl::UnimplementedError(
        "io_uring locks memory for good only on Linux 5.19 or later");
  }
  if (bytes > free_.size() * kPieceBytesMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "io_uring: no room for ", bytes, " bytes more of locked memory"));
  }
  for (size_t at = 0; at < bytes; at += kPieceBytesMax) {
    const size_t size = std::min(kPieceBytesMax, bytes - at);
    const iovec piece = {data + at, size};
    const __u64 tag = 0;
    const int number = free_.back();
    const int result = io_uring_register_buffers_update_tag(
        &ring_, static_cast<unsigned>(number), &piece, &tag, 1);
    if (result != 1) {
      Remove(data);
      return Refusal(result < 0 ? -result : EIO, bytes);
    }
    free_.pop_back();
    pieces_[data + at] = {size, number, data};
  }
  return absl::OkStatus();
}

void RingMemory::Remove(const char* data) {
  auto it = pieces_.find(data);
  while (it != pieces_.end() && it->second.of == data) {
    const iovec none = {nullptr, 0};
    const __u64 tag = 0;
    const int number = it->second.number;
    CHECK_EQ(io_uring_register_buffers_update_tag(
                 &ring_, static_cast<unsigned>(number), &none, &tag, 1),
             1);
    free_.push_back(number);
    it = pieces_.erase(it);
  }
}

int RingMemory::Find(const char* data, size_t bytes) const {
  auto it = pieces_.upper_bound(data);
  if (it == pieces_.begin()) return -1;
  --it;
  const size_t offset = static_cast<size_t>(data - it->first);
  return offset < it->second.bytes && bytes <= it->second.bytes - offset
             ? it->second.number
             : -1;
}

}  // namespace troupe
