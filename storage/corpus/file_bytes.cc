#include "storage/corpus/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/disk/errno_status.h"

namespace troupe {
namespace {

constexpr size_t kBufferBytes = 1 << 18;

}  // namespace

absl::StatusOr<std::unique_ptr<FileBytes>> FileBytes::Open(
    const ByteSourceOptions& options) {
  const bool is_input = options.path == kStandardInput;
  const int fd = is_input ? dup(STDIN_FILENO)
                          : open(options.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat(options.path, ": open"));
  std::unique_ptr<FileBytes> file(new FileBytes(options, fd));
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.path, ": is a folder, not a file"));
  }
  RETURN_IF_ERROR(file->CheckUnchanged());
  return file;
}

FileBytes::FileBytes(const ByteSourceOptions& options, int fd)
    : options_(options), fd_(fd) {}

FileBytes::~FileBytes() { close(fd_); }

absl::Status FileBytes::CheckUnchanged() const {
  if (options_.modified_ns == 0) return absl::OkStatus();
  struct stat info;
  if (fstat(fd_, &info) != 0) {
    return ErrnoStatus(errno, absl::StrCat(options_.path, ": fstat"));
  }
  const int64_t modified_ns =
      int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (static_cast<uint64_t>(info.st_size) == options_.size &&
      modified_ns == options_.modified_ns) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(options_.path, ": changed while it was read (",
                   options_.size, " bytes at first, ", info.st_size,
                   " now); begin again when nothing writes to it"));
}

absl::StatusOr<absl::string_view> FileBytes::Ahead(size_t least) {
  while (!at_end_ && buffer_.size() - begin_ < least) {
    buffer_.erase(0, begin_);
    begin_ = 0;
    const size_t had = buffer_.size();
    buffer_.resize(std::max(least, kBufferBytes));
    const ssize_t got = read(fd_, buffer_.data() + had, buffer_.size() - had);
    buffer_.resize(had + std::max<ssize_t>(got, 0));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return ErrnoStatus(errno, absl::StrCat(options_.path, ": read at offset ",
                                             taken_ + had));
    }
    if (got > 0) continue;
    at_end_ = true;
    RETURN_IF_ERROR(CheckUnchanged());
  }
  return absl::string_view(buffer_).substr(begin_);
}

void FileBytes::Take(size_t bytes) {
  CHECK_LE(bytes, buffer_.size() - begin_);
  begin_ += bytes;
  taken_ += bytes;
}

absl::StatusOr<size_t> FileBytes::Read(char* out, size_t bytes) {
  ASSIGN_OR_RETURN(const absl::string_view ahead, Ahead(1));
  const size_t count = std::min(bytes, ahead.size());
  memcpy(out, ahead.data(), count);
  Take(count);
  return count;
}

}  // namespace troupe
