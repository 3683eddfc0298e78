// A file descriptor with an owner. Interrupted and short operations are
// continued; every error names the file.
#ifndef TROUPE_STORAGE_ENGINE_POSIX_FILE_H_
#define TROUPE_STORAGE_ENGINE_POSIX_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/engine/engine.h"

namespace troupe {

// Move-only; ReadAt and WriteAt are thread-safe.
class PosixFile {
 public:
  // A pipe is no file: InvalidArgument.
  static absl::StatusOr<PosixFile> Open(const std::string& path, IoMode mode);

  PosixFile(PosixFile&& other) noexcept;
  PosixFile& operator=(PosixFile&& other) noexcept;
  ~PosixFile();

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }
  absl::StatusOr<uint64_t> Size() const;

  // Exactly `bytes` bytes; OutOfRange where the file ends before.
  absl::Status ReadAt(uint64_t offset, size_t bytes, char* out) const;
  absl::Status WriteAt(uint64_t offset, absl::string_view bytes) const;
  // Ends the file behind `bytes` bytes.
  absl::Status Truncate(uint64_t bytes) const;
  absl::Status Sync() const;
  // Also what the destructor does, but with the error.
  absl::Status Close();

 private:
  PosixFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_ = -1;
};

// The flags of open(2) for a mode; files are made with mode 0644.
int OpenFlags(IoMode mode);

// All of a file that is at most `bytes_max` long; OutOfRange where it is
// longer.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path,
                                          uint64_t bytes_max);

}  // namespace troupe

#endif  // TROUPE_STORAGE_ENGINE_POSIX_FILE_H_
