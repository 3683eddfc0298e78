#include "storage/engine/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/path_calls.h"
#include "storage/engine/transfer.h"

namespace troupe {
namespace {

absl::Status SyncDescriptor(int fd, const std::string& path) {
  int result;
  do {
    result = fsync(fd);
  } while (result < 0 && errno == EINTR);
  if (result == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat(path, ": fsync"));
}

}  // namespace

int OpenFlags(IoMode mode) {
  switch (mode) {
    case IoMode::kRead:
    case IoMode::kReadCached:
      return O_RDONLY;
    case IoMode::kCreate:
      return O_RDWR | O_CREAT | O_TRUNC;
    case IoMode::kReadWrite:
      return O_RDWR | O_CREAT;
    case IoMode::kDirect:
      return O_RDWR | O_DIRECT;
  }
  return O_RDONLY;
}

absl::StatusOr<PosixFile> PosixFile::Open(const std::string& path,
                                          IoMode mode) {
  // Opening one to read would wait for its writer, maybe for ever.
  struct stat info;
  if (OpenFlags(mode) == O_RDONLY && StatPath(path, &info) == 0 &&
      S_ISFIFO(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a pipe; its content has to be a file"));
  }
  const int fd = OpenPath(path, OpenFlags(mode));
  if (fd < 0) {
    const absl::string_view how =
        mode == IoMode::kDirect ? " past the page cache (O_DIRECT)" : "";
    return ErrnoStatus(errno, absl::StrCat(path, ": open", how));
  }
  return PosixFile(path, fd);
}

PosixFile::PosixFile(PosixFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

PosixFile& PosixFile::operator=(PosixFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

PosixFile::~PosixFile() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<uint64_t> PosixFile::Size() const {
  struct stat info;
  if (fstat(fd_, &info) < 0) {
    return ErrnoStatus(errno, absl::StrCat(path_, ": fstat"));
  }
  return static_cast<uint64_t>(info.st_size);
}

absl::Status PosixFile::ReadAt(uint64_t offset, size_t bytes, char* out) const {
  FileTransfer transfer(
      {.kind = IoKind::kRead, .offset = offset, .data = out, .bytes = bytes},
      path_);
  int64_t result;
  do {
    result = pread(fd_, transfer.data(), transfer.bytes(),
                   static_cast<off_t>(transfer.offset()));
    if (result < 0) result = -errno;
  } while (transfer.Advance(result, false) == FileTransfer::Next::kAgain);
  return transfer.status();
}

absl::Status PosixFile::WriteAt(uint64_t offset,
                                absl::string_view bytes) const {
  FileTransfer transfer({.kind = IoKind::kWrite,
                         .offset = offset,
                         .data = const_cast<char*>(bytes.data()),
                         .bytes = bytes.size()},
                        path_);
  int64_t result;
  do {
    result = pwrite(fd_, transfer.data(), transfer.bytes(),
                    static_cast<off_t>(transfer.offset()));
    if (result < 0) result = -errno;
  } while (transfer.Advance(result, false) == FileTransfer::Next::kAgain);
  return transfer.status();
}

absl::Status PosixFile::Truncate(uint64_t bytes) const {
  int result;
  do {
    result = ftruncate(fd_, static_cast<off_t>(bytes));
  } while (result < 0 && errno == EINTR);
  if (result == 0) return absl::OkStatus();
  return ErrnoStatus(errno, absl::StrCat(path_, ": truncate to ", bytes));
}

absl::Status PosixFile::Sync() const { return SyncDescriptor(fd_, path_); }

absl::Status PosixFile::Close() {
  // Linux frees the descriptor whatever close says, so EINTR is not retried.
  if (close(std::exchange(fd_, -1)) < 0 && errno != EINTR) {
    return ErrnoStatus(errno, absl::StrCat(path_, ": close"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          uint64_t bytes_max) {
  ASSIGN_OR_RETURN(PosixFile file, PosixFile::Open(path, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  if (bytes > bytes_max) {
    return absl::OutOfRangeError(absl::StrCat(
        path, ": has ", bytes, " bytes, at most ", bytes_max, " make sense"));
  }
  std::string content(bytes, '\0');
  RETURN_IF_ERROR(file.ReadAt(0, bytes, content.data()));
  return content;
}

}  // namespace troupe
